"""Public reports about Kineto traces and what analyses them, in our own words, with the tests of ours that answer each.

hta: HolisticTraceAnalysis; kineto, pytorch, tutorials: of PyTorch; roctracer, rocm-systems: of AMD's profilers.
"""

from typing import Final

from tests.unit.symptoms.symptom import Symptom, symptom

_RANKS = "test_symptoms_ranks"
_COMMUNICATION = "test_symptoms_communication"
_TIMES = "test_symptoms_times"
_MISSING = "test_symptoms_missing_events"
_TEXT = "test_symptoms_broken_text"
_UGLY = "test_traces_ugly_input"

REPORTED_OF_KINETO: Final[tuple[Symptom, ...]] = (
    # --- analysis of Kineto traces ------------------------------------------------------------------------------------
    symptom(
        "a file without a rank ends in a stack trace, or in an empty sequence",
        f"{_RANKS}::test_a_file_that_states_no_rank_has_none_and_is_not_called_rank_0",
        f"{_RANKS}::test_a_rank_of_null_or_nonsense_is_no_rank",
        "test_job_ranks::test_no_ranks_at_all",
        ids="hta#17 hta#107",
    ),
    symptom(
        "a file without a rank is taken for rank 0",
        f"{_RANKS}::test_a_file_that_states_no_rank_has_none_and_is_not_called_rank_0",
        ids="hta-PR#179",
    ),
    symptom(
        "a figure needs the name of a call that is not in the trace",
        f"{_RANKS}::test_nothing_depends_on_calls_that_were_never_made",
        ids="hta#16",
    ),
    symptom(
        "the number of queued kernels is negative: kernels begin before the call that launched them",
        "test_measures_idle::test_a_call_after_its_event_means_that_the_clocks_disagree",
        "test_measures_idle::test_a_kernel_may_begin_before_its_launch_returns",
        ids="hta-PR#59",
    ),
    symptom(
        "no communication, or an overlap that is no number, as kernels are called ncclDevKernel or in lower case",
        f"{_COMMUNICATION}::test_overlap_is_a_number_for_every_spelling_of_a_collective",
        f"{_COMMUNICATION}::test_without_a_collective_communication_is_zero_and_nothing_is_divided_by_it",
        "test_traces_kernel_names::test_communication_kernels",
        ids="hta#56 hta#208 hta#247 hta-PR#109",
    ),
    symptom(
        "the search for stragglers finds no collective in traces of a newer NCCL",
        f"{_RANKS}::test_a_straggler_is_found_whatever_its_library_calls_the_kernels",
        ids="hta#360 hta-PR#361",
    ),
    symptom(
        "0.2 % of the time is not compute where the time line shows a tenth",
        f"{_COMMUNICATION}::test_exposed_communication_is_what_the_time_line_shows",
        ids="hta#241",
    ),
    symptom(
        "waits of the host (cuda_sync) count as kernels in the split of idle time",
        f"{_MISSING}::test_waits_of_the_host_are_no_work_of_the_device",
        ids="hta-PR#149",
    ),
    symptom(
        "reading is slow, and needs many times the file in memory",
        f"{_TEXT}::test_a_large_file_is_read_in_little_memory",
        "test_pattern_growth::test_reading_costs_no_more_than_the_file_grows",
        ids="hta#48 hta#43 hta#191 hta#250",
    ),
    symptom(
        "a trace of something else ends in an error nobody can use",
        f"{_TEXT}::test_a_chrome_trace_of_something_else_is_refused_by_what_it_holds",
        "test_traces_formats::test_a_chrome_trace_of_another_program_is_not_a_pytorch_trace",
        ids="hta#233",
    ),
    symptom(
        "integers beyond 64 bits, invalid UTF-8 or bare quotes end the reading",
        f"{_COMMUNICATION}::test_ids_wider_than_64_bits_do_not_cost_the_event",
        f"{_TEXT}::test_numbers_wider_than_any_type_in_arguments_nobody_reads",
        f"{_UGLY}::test_invalid_utf8_is_replaced_and_counted",
        f"{_UGLY}::test_unescaped_quotes",
        ids="hta-PR#324",
    ),
    # --- what the profiler writes -------------------------------------------------------------------------------------
    symptom(
        "backslashes of Windows paths are not escaped",
        f"{_UGLY}::test_lone_backslashes_as_windows_paths_have_them",
        ids="pytorch#33961 pytorch#98432",
    ),
    symptom(
        "a line break and quotes in the name of a Python function",
        f"{_TEXT}::test_a_line_break_and_quotes_in_the_name_of_a_python_function_cost_no_kernel",
        ids="pytorch#113001",
    ),
    symptom(
        "garbage bytes inside an event",
        f"{_TEXT}::test_garbage_between_the_digits_of_one_event_costs_that_event_alone",
        f"{_UGLY}::test_rubbish_between_events_is_dropped",
        ids="kineto#80",
    ),
    symptom("an escape that JSON does not know", f"{_TEXT}::test_an_escape_that_is_none", ids="kineto#336"),
    symptom(
        "one control character makes a file of hundreds of megabytes unreadable",
        f"{_TEXT}::test_a_control_character_in_one_of_thousands_of_names",
        f"{_UGLY}::test_control_characters_inside_a_name",
        ids="pytorch#130622",
    ),
    symptom(
        "kernels with start 0 and duration 0",
        f"{_TIMES}::test_kernels_at_zero_of_no_length_beside_absolute_times_are_dropped",
        f"{_UGLY}::test_unusable_times_are_dropped_and_counted",
        ids="kineto#109",
    ),
    symptom(
        "negative durations", f"{_TIMES}::test_an_event_that_never_ended_takes_no_time_from_others", ids="kineto-PR#646"
    ),
    symptom(
        "events that had not ended have the duration -1",
        f"{_TIMES}::test_an_event_that_never_ended_takes_no_time_from_others",
        f"{_UGLY}::test_a_missing_duration",
        ids="pytorch-PR#150131",
    ),
    symptom(
        "kernels out of the profiled range are dropped without a word",
        f"{_MISSING}::test_launches_whose_kernels_fell_out_of_range_are_told",
        "test_traces_hostile_sizes::test_launches_without_their_kernels_make_no_idle_time_launch_bound",
        ids="kineto#996 pytorch#192021",
    ),
    symptom(
        "a viewer shows nothing of a file of one or two gigabytes",
        f"{_TEXT}::test_a_large_file_is_read_in_little_memory",
        ids="kineto#595 kineto#760 kineto#805 xprof#720",
    ),
    symptom(
        "times are relative to a base that stands elsewhere",
        f"{_RANKS}::test_relative_times_are_told_from_absolute_ones_by_the_base_the_file_states",
        "test_job_ranks::test_times_are_told_apart_by_the_base_a_file_adds_to_them",
        ids="kineto-PR#928",
    ),
    symptom(
        "traces taken on demand say nothing of rank and world",
        "test_job_ranks::test_a_name_gives_a_rank_where_the_content_does_not",
        f"{_RANKS}::test_a_file_that_states_no_rank_has_none_and_is_not_called_rank_0",
        ids="kineto-PR#956",
    ),
    symptom(
        "iterations of a while node of a graph are missing",
        f"{_TIMES}::test_a_gap_between_kernels_of_one_graph_is_not_the_hosts",
        "test_measures_idle::test_kernels_of_one_graph_were_all_launched_with_the_first",
        ids="kineto#1062",
    ),
    symptom(
        "kernels of HIP graphs carry no identity of their graph",
        "test_traces_naming::test_one_launch_of_a_graph_serves_many_kernels",
        f"{_MISSING}::test_a_graph_that_keeps_the_device_busy_is_no_idle_time",
        ids="kineto-PR#1567",
    ),
    symptom(
        "kernels of the warm-up come before the first step",
        f"{_TIMES}::test_kernels_before_the_first_step_are_in_the_file_and_in_no_step",
        ids="kineto#743 tutorials#2014",
    ),
    symptom(
        "starts and ends tie",
        f"{_TIMES}::test_starts_and_ends_that_tie_or_touch_count_once",
        ids="kineto-PR#992 roctracer#105",
    ),
    symptom(
        "every collective is called ncclDevKernel_Generic",
        f"{_COMMUNICATION}::test_on_rocm_the_arguments_say_which_collective_a_generic_kernel_is",
        f"{_COMMUNICATION}::test_without_arguments_the_operator_around_it_says_so",
        ids="roctracer#101",
    ),
    symptom(
        "nearly all kernels of HIP graphs are missing",
        f"{_MISSING}::test_graph_launches_without_their_kernels_are_told",
        ids="rocm-systems-PR#9697",
    ),
    # --- events that overlap on one track -----------------------------------------------------------------------------
    symptom(
        "events that overlap without nesting are dropped by a viewer",
        f"{_TIMES}::test_slices_that_overlap_without_nesting_are_both_kept",
        "test_traces_summary::test_overlapping_kernels_of_one_stream_count_once_in_the_union",
        ids="perfetto#432 perfetto#503 perfetto#6421 janestreet-perfetto-PR#35",
    ),
    symptom(
        "a duration runs over the next slices, for seconds",
        f"{_TIMES}::test_a_duration_that_overruns_the_next_slice_leaves_the_next_its_time",
        f"{_TIMES}::test_several_malformed_events_are_told_in_few_words",
        f"{_TIMES}::test_kernels_of_one_graph_may_run_side_by_side",
        ids="tracelens#669",
    ),
    symptom(
        "one malformed event is 99 % of the time of the device, and idle time vanishes",
        f"{_TIMES}::test_one_malformed_event_is_not_99_percent_of_the_time",
        f"{_TIMES}::test_an_event_that_nothing_contradicts_is_kept_and_told",
        f"{_TIMES}::test_a_collective_that_waits_beside_compute_keeps_its_time_and_is_told",
        ids="tracelens#972",
    ),
)
