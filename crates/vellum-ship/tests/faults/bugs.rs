//! Faults that others had, by the numbers of their reports, and the tests that show that they are
//! not here.

/// A report, its fault, and the test; or why it cannot break here.
struct Bug(&'static str, &'static str, Proof);

enum Proof {
    /// A file below `crates`, and the name of a test in it.
    Test(&'static str, &'static str),
    Absent(&'static str),
}

use Proof::{Absent, Test};

const MODEL: &str = "vellum-ship/src/decide/model/scenarios.rs";
const KILLS: &str = "vellum-ship/tests/faults/kills.rs";
const HTTP: &str = "vellum-ship/tests/faults/http.rs";
const OVERRUN: &str = "vellum-ship/tests/faults/overrun.rs";
const RIVALS: &str = "vellum-ship/tests/faults/rivals.rs";
const SHIPPING: &str = "vellum-ship/tests/shipping.rs";
const RESTORING: &str = "vellum-ship/tests/reading/restoring.rs";
const HOSTILE: &str = "vellum-ship/tests/reading/hostile.rs";
const BAD: &str = "vellum-ship/tests/stores/bad.rs";
const SERVERS: &str = "vellum-ship/tests/stores/servers.rs";
const ELECTING: &str = "vellum/tests/it/ship/electing.rs";

const BUGS: &[Bug] = &[
    Bug("litestream #88", "encryption was configured and ignored", Test(HOSTILE, FLAGS)),
    Bug("litestream #790", "encryption was dropped without a word", Test(HOSTILE, FLAGS)),
    Bug("litestream #234", "most of the bill was for lists", Test(HTTP, IDLE)),
    Bug("litestream #1172", "a hundred thousand lists of an idle database", Test(HTTP, IDLE)),
    Bug("litestream #393", "after a restore all was shipped again", Test(SHIPPING, TAKE_OVER)),
    Bug("litestream #781", "after a restore nothing was shipped", Test(SHIPPING, TAKE_OVER)),
    Bug("litestream #753", "the first transaction was missing", Test(SHIPPING, RESTORED)),
    Bug("litestream #771", "what was merged could not be restored by time", Test(RESTORING, TIME)),
    Bug("litestream #1084", "nor what retention had thinned out", Test(RESTORING, MERGED)),
    Bug("litestream #847", "the plan of a restore had holes", Test(HOSTILE, HOLES)),
    Bug("litestream #1199", "a restore failed in the end", Test(KILLS, KILLED)),
    Bug("litestream #784", "the disk filled up while the store was away", Test(OVERRUN, AWAY)),
    Bug("litestream #927", "200 GB beside an idle database", Test(OVERRUN, AWAY)),
    Bug("litestream #1104", "local files were not removed", Test(OVERRUN, AWAY)),
    Bug("litestream #1331", "local files were not removed", Test(OVERRUN, AWAY)),
    Bug(
        "litestream #1310",
        "a full disk stopped it without a word: it staged what it shipped",
        Absent("nothing is staged; a chunk is read from the log's own files"),
    ),
    Bug("litestream #1515", "it stopped without a word", Test(RIVALS, COPIES)),
    Bug("litestream #1119", "the lease was built and not used", Test(RIVALS, COPIES)),
    Bug("litestream #1301", "two wrote to the same replica", Test(RIVALS, COPIES)),
    Bug("litestream #1270", "retention removed what a restore read", Test(RESTORING, RETENTION)),
    Bug("litestream #1307", "merging removed what a restore planned", Test(RESTORING, RETENTION)),
    Bug("WAL-G #104", "another server's files were overwritten", Test(RIVALS, COPIES)),
    Bug("WAL-G #354", "the option against overwriting did nothing", Test(SERVERS, ONE_WINS)),
    Bug("pgBackRest #1848", "errors of the store lifted the limit", Test(OVERRUN, AWAY)),
    Bug("pgBackRest #2629", "a file that always failed lifted the limit", Test(OVERRUN, DEAD)),
    Bug("pgBackRest #2799", "the limit counted what is pushed only", Test(ELECTING, LIMIT)),
    Bug("pgBackRest #2802", "what was dropped was hard to see", Test(OVERRUN, AWAY)),
    Bug("SlateDB #352", "a fence was collected, and the fenced one wrote", Test(MODEL, SEALS)),
    Bug("SlateDB #1622", "the same, and acknowledged writes were lost", Test(MODEL, UNCHECKED)),
    Bug("SlateDB #766", "creates were not repeated", Test(HTTP, FAULTS)),
    Bug("SlateDB #819", "a repeated create met its own object", Test(HTTP, FAULTS)),
    Bug("SlateDB #1164", "a number decided whose an object is", Test(MODEL, NONCE)),
    Bug("SlateDB #1230", "an object that was gone was asked for for ever", Test(MODEL, ABSENT)),
    Bug("chroma #3141", "what others still read was collected", Test(MODEL, MARKER)),
    Bug("chroma #4119", "what others still read was collected", Test(RESTORING, RETENTION)),
    Bug("chroma #4972", "deleted before the manifest said so", Test(MODEL, MARKER)),
    Bug("chroma #5153", "a collection that died was not continued", Test(SHIPPING, DELETED)),
    Bug(
        "chroma #5207",
        "the same garbage was collected twice",
        Absent(
            "no file says what is garbage: each deletion lists anew, and deleting is idempotent",
        ),
    ),
    Bug("KAFKA-15168", "pieces that overlap hid each other", Test(MODEL, CHUNKS)),
    Bug("KAFKA-16511", "pieces that overlap were never removed", Test(SHIPPING, DELETED)),
    Bug("KAFKA-20732", "unknown state was taken for deleted", Test(MODEL, RETAINING)),
    Bug("rustfs #1610", "a deleted name stayed taken", Test(BAD, REFUSED)),
    Bug("object_store #830", "Azure's answer was no AlreadyExists", Test(SERVERS, AZURE)),
    Bug("object_store #852", "409 looks as if the object was there", Test(HTTP, FAULTS)),
];

const FLAGS: &str = "flags_that_are_not_known_are_refused";
const IDLE: &str = "an_idle_log_makes_no_request";
const TAKE_OVER: &str = "a_take_over_fences_the_owner_and_keeps_what_both_have";
const RESTORED: &str = "what_was_shipped_is_restored_and_a_second_time_ships_what_is_new";
const TIME: &str = "a_time_ends_the_log_with_what_was_shipped_then";
const MERGED: &str = "merged_objects_and_generations_are_read_as_one_log";
const HOLES: &str = "a_removed_object_is_an_error_unless_it_is_the_last";
const KILLED: &str = "logs_of_all_kinds_lose_and_double_nothing_on_a_server";
const AWAY: &str = "a_store_that_is_away_for_long_costs_a_gap_and_stops_nobody";
const DEAD: &str = "a_shipper_that_is_stopped_does_not_fill_the_disk";
const COPIES: &str = "of_two_copies_one_is_stopped_at_the_first_difference";
const RETENTION: &str = "retention_beside_a_restore_is_noticed_and_planned_around";
const ONE_WINS: &str = "one_of_thirty_two_wins_at_versitygw";
const LIMIT: &str = "no_more_is_kept_than_was_allowed";
const SEALS: &str = "deleting_seals";
const UNCHECKED: &str = "no_check_after_create";
const FAULTS: &str = "a_log_is_shipped_and_restored_through_every_fault";
const NONCE: &str = "nonce_decides";
const ABSENT: &str = "absence_trusted_by_readers";
const MARKER: &str = "marker_after_deletion";
const CHUNKS: &str = "chunks_first";
const DELETED: &str = "old_generations_are_deleted_and_the_rest_can_be_restored";
const RETAINING: &str = "retaining_anywhere";
const REFUSED: &str = "stores_in_which_two_can_win_are_refused_by_name";
const AZURE: &str = "azurite_keeps_the_contract";

/// Tests are functions, or lines of a table that makes them.
fn has_test(text: &str, name: &str) -> bool {
    let (function, line) = (format!("fn {name}("), format!("{name}:"));
    text.lines().any(|text| text.contains(&function) || text.trim().starts_with(&line))
}

#[test]
fn each_report_has_its_test() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for Bug(number, broke, proof) in BUGS {
        match proof {
            Test(file, name) => {
                let text = std::fs::read_to_string(crates.join(file)).unwrap();
                assert!(has_test(&text, name), "{number}, {broke}: no test {name} in {file}");
            }
            Absent(why) => assert!(!why.is_empty()),
        }
    }
}

#[test]
fn no_report_is_there_twice() {
    let mut numbers: Vec<&str> = BUGS.iter().map(|bug| bug.0).collect();
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]));
    assert_eq!(numbers.len(), 44);
}
