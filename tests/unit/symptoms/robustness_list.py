"""What any reader of traces has to bear, one by one, with the tests that show it."""

from typing import Final

from tests.unit.symptoms.symptom import Symptom, symptom

_UGLY, _KINETO = "test_traces_ugly_input", "test_traces_kineto"

BORNE: Final[tuple[Symptom, ...]] = (
    symptom(
        "gzip or plain, told by magic bytes and not by the name",
        "test_traces_content::test_gzip_is_recognised_by_its_bytes_not_by_the_name",
    ),
    symptom("invalid UTF-8", f"{_UGLY}::test_invalid_utf8_is_replaced_and_counted"),
    symptom("control characters", f"{_UGLY}::test_control_characters_inside_a_name"),
    symptom("lone backslashes", f"{_UGLY}::test_lone_backslashes_as_windows_paths_have_them"),
    symptom("unescaped quotes", f"{_UGLY}::test_unescaped_quotes"),
    symptom("a truncated file", f"{_UGLY}::test_a_truncated_gzip_file_gives_its_whole_events"),
    symptom(
        "the end of the list is missing (a killed job)", f"{_UGLY}::test_a_file_that_stops_early_gives_its_whole_events"
    ),
    symptom("events as a bare array", f"{_UGLY}::test_a_bare_array_of_events"),
    symptom(
        "times as integers, decimals and strings",
        "test_traces_exact_time::test_decimal_microseconds_become_exact_nanoseconds",
        f"{_UGLY}::test_times_as_strings_as_ascend_writes_them",
    ),
    symptom(
        "microseconds with a fraction of nanoseconds",
        "test_traces_exact_time::test_columns_agree_with_fractions_over_many_spellings",
    ),
    symptom("absolute times of 1e15", "test_traces_exact_time::test_absolute_times_survive_reading"),
    symptom(
        "times relative to a base",
        "test_symptoms_ranks::test_relative_times_are_told_from_absolute_ones_by_the_base_the_file_states",
    ),
    symptom(
        "integers of 64 bits and more",
        f"{_UGLY}::test_integers_wider_than_64_bits_are_not_joined_on",
        "test_symptoms_communication::test_ids_wider_than_64_bits_do_not_cost_the_event",
    ),
    symptom("no duration", f"{_UGLY}::test_a_missing_duration"),
    symptom("a duration of 0", f"{_UGLY}::test_a_zero_duration_and_a_start_at_zero_are_fine_where_time_is_relative"),
    symptom("a duration of -1", "test_symptoms_times::test_an_event_that_never_ended_takes_no_time_from_others"),
    symptom(
        "an absurd duration",
        f"{_UGLY}::test_unusable_times_are_dropped_and_counted",
        "test_symptoms_times::test_one_malformed_event_is_not_99_percent_of_the_time",
    ),
    symptom("a start of 0", "test_symptoms_times::test_kernels_at_zero_of_no_length_beside_absolute_times_are_dropped"),
    symptom("pid and tid as numbers or as texts", f"{_UGLY}::test_pid_and_tid_as_strings"),
    symptom("categories of 2021, with capitals", f"{_KINETO}::test_the_schema_of_2021"),
    symptom("the key 'external id' in lower case", f"{_KINETO}::test_the_schema_of_2021"),
    symptom(
        "streams as a text, 'stream 7'", f"{_UGLY}::test_pid_and_tid_as_strings", f"{_KINETO}::test_the_schema_of_2021"
    ),
    symptom(
        "flows called async_cpu_to_gpu and async_gpu",
        "test_symptoms_missing_events::test_old_and_new_flows_between_host_and_device_are_counted_and_not_needed",
    ),
    symptom(
        "no distributedInfo", "test_symptoms_ranks::test_a_file_that_states_no_rank_has_none_and_is_not_called_rank_0"
    ),
    symptom(
        "the same rank twice",
        "test_traces_summary::test_a_rank_that_comes_twice_is_counted_once",
        "test_job_ranks::test_of_one_rank_at_the_same_time_the_larger_profile_counts",
    ),
    symptom("the host alone", "test_traces_summary::test_a_file_without_a_device_speaks_of_the_host"),
    symptom("the device alone", "test_symptoms_missing_events::test_a_file_of_the_device_alone_has_its_shares"),
    symptom(
        "no kernel at all",
        "test_traces_summary::test_nothing_to_summarise",
        "test_symptoms_broken_text::test_no_event_at_all_is_empty",
    ),
    symptom("overlap within one stream", "test_symptoms_times::test_slices_that_overlap_without_nesting_are_both_kept"),
    symptom(
        "kernels before the first step",
        "test_symptoms_times::test_kernels_before_the_first_step_are_in_the_file_and_in_no_step",
    ),
    symptom(
        "one correlation id of hundreds of kernels",
        "test_symptoms_missing_events::test_hundreds_of_kernels_on_one_correlation_have_names_and_classes",
    ),
    symptom(
        "marks on the device, which have a stream and are no work",
        "test_symptoms_missing_events::test_marks_on_the_device_are_no_kernels",
    ),
    symptom(
        "ranges and stalls of the profiler itself",
        "test_symptoms_missing_events::test_counters_for_hardware_are_no_events_of_the_time_line",
    ),
    symptom(
        "steps around nothing but operators",
        "test_symptoms_missing_events::test_steps_of_a_file_with_nothing_but_annotations",
    ),
    symptom("metadata alone", "test_symptoms_broken_text::test_a_file_of_metadata_alone_is_empty"),
    symptom(
        "the words Infinity and NaN",
        f"{_UGLY}::test_words_that_are_no_json_numbers",
        f"{_UGLY}::test_a_nan_as_time_drops_the_event_and_says_so",
    ),
    symptom(
        "decompression bombs",
        "test_traces_content::test_a_bomb_stops_while_it_is_inflated",
        "test_bombs::test_a_gzip_bomb_ends_while_it_is_inflated",
    ),
)
