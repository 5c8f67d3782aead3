//! The Markdown of a report.

use std::path::Path;

use super::*;
use crate::conditions::Conditions;
use crate::report::{Better, Case};

fn row(filesystem: &str, way: &str) -> Case {
    Case { verified: true, ..Case::new("writes") }
        .key("filesystem", filesystem)
        .key("file", "emptied")
        .key("way", way)
        .metric("write", "GB/s", Better::Higher, vec![1.5, 2.5, 123.0])
        .metric("speed", "x", Better::Higher, vec![0.5])
}

fn markdown(cases: Vec<Case>) -> String {
    let conditions = Conditions::now(Path::new("/"), &vellum::Options::default());
    Report::new("write", conditions, 3, vec!["it rains".into()], cases).to_markdown()
}

#[test]
fn every_table_has_its_rows_and_the_reasons_stand_below() {
    let skipped = Case { verified: false, metrics: Vec::new(), ..row("ext4", "b|c") };
    let skipped = Case { skipped: Some("no O_DIRECT".into()), ..skipped };
    let text = markdown(vec![row("ext4", "a"), skipped, row("xfs", "a")]);
    let expected = "
## writes, ext4, file emptied

| way | write GB/s | min … max | speed x | verified |
| :-- | --: | --: | --: | :-- |
| a | 2.50 | 1.50 … 123 | 0.50 | yes |
| b\\|c | – | – | – | skipped |

## writes, xfs, file emptied

| way | write GB/s | min … max | speed x | verified |
| :-- | --: | --: | --: | :-- |
| a | 2.50 | 1.50 … 123 | 0.50 | yes |

- skipped writes, ext4, file emptied: b\\|c: no O\\_DIRECT
- warning: it rains
";
    assert!(text.starts_with("# vellum bench write\n\n- "), "{text}");
    assert!(text.ends_with(expected), "{text}");
    assert!(text.contains("3 rounds and a warm-up"), "{text}");
}

/// A saved report may be of any user.
#[test]
fn no_text_of_a_saved_report_is_obeyed_by_a_terminal_or_is_a_heading() {
    let mut reports = Report::from_json(
        &Report::new(
            "write\u{1b}[31m <b>",
            Conditions::now(Path::new("/"), &vellum::Options::default()),
            3,
            vec!["it\u{9b}1m rains".into()],
            vec![row("ext4\u{7}", "a")],
        )
        .to_json()
        .unwrap(),
    )
    .unwrap();
    let report = reports.remove(0);
    let text = report.to_markdown();
    assert!(text.starts_with("# vellum bench write\\\\u{1b}\\[31m \\<b\\>\n"), "{text}");
    let is_obeyed = |c: char| c.is_control() && c != '\n';
    assert!(!text.contains(is_obeyed) && !report.table().contains(is_obeyed), "{text}");
}
