"""Public reports about collectives, graphs, JAX, execution traces and Nsight exports, with the tests that answer each.

tracelens, hyperloom: of AMD; the others are the names of the projects.
"""

from typing import Final

from tests.unit.symptoms.symptom import Symptom, symptom

_RANKS = "test_symptoms_ranks"
_COMMUNICATION = "test_symptoms_communication"
_MISSING = "test_symptoms_missing_events"
_XLA = "test_symptoms_xla"
_GRAPHS = "test_symptoms_graphs"
_UGLY = "test_traces_ugly_input"

REPORTED_OF_OTHERS: Final[tuple[Symptom, ...]] = (
    # --- analysis of collectives, operators and graphs ----------------------------------------------------------------
    symptom(
        "ranks whose groups differ end in a key that is not there",
        f"{_RANKS}::test_ranks_whose_groups_differ_are_put_together",
        ids="tracelens#60",
    ),
    symptom(
        "sends and receives are not supported",
        f"{_RANKS}::test_a_send_and_a_receive_have_bytes_and_peers",
        "test_rank_matching::test_sends_meet_their_receives",
        ids="tracelens#104",
    ),
    symptom(
        "kernels of a communication library cannot be marked as such without editing the tool",
        f"{_COMMUNICATION}::test_a_rule_of_ones_own_makes_communication_of_a_kernel_nobody_knows",
        f"{_COMMUNICATION}::test_expert_parallel_kernels_are_communication_though_no_name_says_nccl",
        ids="tracelens#289",
    ),
    symptom(
        "collectives of serving engines' own count as compute",
        f"{_COMMUNICATION}::test_overlap_is_a_number_for_every_spelling_of_a_collective",
        "test_traces_shipped::test_communication_of_the_b200_trace_is_more_than_its_one_nccl_kernel",
        ids="tracelens-PR#547",
    ),
    symptom(
        "the report of a serving engine is nearly empty",
        f"{_MISSING}::test_hundreds_of_kernels_on_one_correlation_have_names_and_classes",
        ids="tracelens#297",
    ),
    symptom(
        "a quarter of the time is idle where the device is always busy: kernels of graphs are not counted",
        f"{_MISSING}::test_a_graph_that_keeps_the_device_busy_is_no_idle_time",
        ids="tracelens#728",
    ),
    symptom(
        "a trace of the device alone is not read",
        f"{_MISSING}::test_a_file_of_the_device_alone_has_its_shares",
        "test_measures_idle::test_a_file_of_the_device_alone_shows_no_cause",
        ids="tracelens-PR#451",
    ),
    symptom(
        "kernels that cannot be linked to an operator are dropped",
        f"{_MISSING}::test_kernels_nobody_launched_in_the_file_count_all_the_same",
        ids="tracelens#106 tracelens-PR#108",
    ),
    symptom(
        "kernels that were captured into a graph are missing",
        f"{_MISSING}::test_graph_launches_without_their_kernels_are_told",
        "test_traces_hostile_sizes::test_launches_without_their_kernels_make_no_idle_time_launch_bound",
        ids="hyperloom#946",
    ),
    # --- XProf and JAX ------------------------------------------------------------------------------------------------
    symptom(
        "without a step marker all times are zero",
        f"{_XLA}::test_without_a_marked_step_times_are_those_of_the_window_and_not_zero",
        "test_xplane_op_table::test_without_steps_the_window_stands_and_says_so",
        ids="xprof#578 xprof#571 xprof#282 tensorflow#66410",
    ),
    symptom(
        "a viewer is slow on a compressed file of 17 MB",
        f"{_XLA}::test_a_viewers_file_of_many_events_in_gzip_is_read_whole",
        "test_bombs_of_text::test_a_viewers_file_of_many_events_needs_little_memory",
        ids="xprof#65",
    ),
    symptom(
        "no event was collected",
        f"{_XLA}::test_a_profile_in_which_no_event_was_collected_is_empty_and_says_what_to_do",
        "test_xplane_decode::test_no_plane_is_empty",
        ids="xprof#380",
    ),
    symptom(
        "the viewer's file stops at a million events and does not say so",
        f"{_XLA}::test_a_viewers_file_that_reaches_its_limit_is_cut_and_told",
        "test_xplane_files::test_of_both_the_protobuf_counts",
        ids="jax#21295 xla-PR#44702",
    ),
    symptom(
        "tables of operators are empty when command buffers are on",
        f"{_XLA}::test_kernels_that_name_no_operator_are_counted_and_unclassified",
        ids="xprof#3070",
    ),
    symptom(
        "the last scope has a utilisation of zero",
        f"{_XLA}::test_the_last_operator_of_a_line_has_its_time",
        ids="xprof#3015",
    ),
    symptom(
        "peaks of AMD chips are wrong",
        "test_xplane_gpu_cpu::test_the_plane_s_memory_bandwidth_is_not_taken_for_a_peak",
        "test_xplane_op_table::test_without_a_stated_peak_a_resource_is_not_judged",
        ids="xprof-PR#3163",
    ),
    # --- execution traces and Nsight ----------------------------------------------------------------------------------
    symptom(
        "traces of AMD devices have no correlation ids",
        f"{_GRAPHS}::test_kernels_without_correlation_are_joined_with_their_operator_by_external_id",
        "test_work_attribution::test_files_whose_kernels_have_no_correlation_are_joined_by_external_id",
        ids="chakra#128",
    ),
    symptom(
        "an execution trace without record function ids",
        f"{_GRAPHS}::test_an_execution_trace_without_record_ids_is_empty_and_says_so",
        "test_et_schemas::test_nodes_that_are_no_call_are_left_out",
        ids="chakra#152",
    ),
    symptom(
        "the parent of a node is not in the file",
        f"{_GRAPHS}::test_a_parent_that_is_not_in_the_file_costs_the_node_nothing",
        ids="chakra#45",
    ),
    symptom(
        "launches of HIP are not known by name",
        f"{_MISSING}::test_a_late_launch_is_known_by_every_name_of_it",
        f"{_MISSING}::test_launches_whose_kernels_fell_out_of_range_are_told",
        ids="chakra-PR#171",
    ),
    symptom(
        "a node lacks a key that is looked up",
        f"{_GRAPHS}::test_nodes_that_lack_every_key_a_simulator_looks_up",
        ids="astra-sim#169",
    ),
    symptom(
        "tables have a version in their name, and there is no table of ranges",
        f"{_GRAPHS}::test_tables_with_a_version_in_their_name_and_no_ranges",
        "test_nsys_device::test_tables_with_a_version_behind_their_name",
        "test_nsys_host::test_without_ranges_and_calls_there_are_kernels",
        ids="nsys-ai-PR#291 nsys-ai-PR#294",
    ),
    symptom(
        "a column for nodes of graphs is missing, or decides",
        f"{_GRAPHS}::test_a_column_that_older_exports_lack",
        "test_nsys_device::test_kernels_of_a_graph_traced_node_by_node_are_kernels",
        ids="nsys-ai#236",
    ),
    symptom(
        "the version of the schema is not looked at",
        f"{_GRAPHS}::test_the_version_of_the_schema_decides_before_a_table_is_read",
        "test_nsys_hostile::test_an_unknown_version_is_refused_with_those_that_are_known",
        ids="flameox#190",
    ),
    symptom("times are strings", f"{_UGLY}::test_times_as_strings_as_ascend_writes_them", ids="ascend-pytorch#133"),
)
