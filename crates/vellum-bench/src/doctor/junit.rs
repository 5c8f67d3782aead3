//! A diagnosis as programs that show the results of tests read it.

use super::diagnosis::Diagnosis;
use super::verdict::{Judged, Verdict};

impl Diagnosis {
    /// For programs that show the results of tests: a test for each program. Marginal is passed
    /// and told in the output; a machine that was too busy to tell has skipped the test.
    pub fn to_junit(&self) -> String {
        junit(self)
    }
}

fn junit(diagnosis: &Diagnosis) -> String {
    let programs = &diagnosis.programs;
    let failures =
        programs.iter().filter(|judged| judged.verdict == Verdict::NotGoodEnough).count();
    let skipped = programs.iter().filter(|judged| judged.verdict == Verdict::CannotTell).count();
    let cases: String = programs.iter().map(case).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"vellum doctor\" tests=\"{}\" \
         failures=\"{failures}\" skipped=\"{skipped}\" timestamp=\"{}\">\n{cases}</testsuite>\n",
        programs.len(),
        diagnosis.report.conditions.date,
    )
}

fn case(judged: &Judged) -> String {
    let millis = judged.ticks.iter().map(|tick| tick.span_ms).sum::<f64>();
    let name = escaped(&judged.name);
    let head =
        format!("  <testcase classname=\"doctor\" name=\"{name}\" time=\"{:.3}\">\n", millis / 1e3);
    let said = escaped(&judged.line());
    let change = judged.change.as_deref().unwrap_or_default();
    let inside = match judged.verdict {
        Verdict::CannotTell => format!("    <skipped message=\"{said}\"/>\n"),
        Verdict::NotGoodEnough => {
            let text = escaped(change);
            format!("    <failure message=\"{said}\">{text}</failure>\n")
        }
        _ => format!("    <system-out>{said} {}</system-out>\n", escaped(change)),
    };
    format!("{head}{inside}  </testcase>\n")
}

/// Text that ends nothing it stands in. What XML has no place for becomes a question mark.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            letter if letter.is_control() => escaped.push('?'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        assert_eq!(escaped("a<b> & \"c\"\nd\u{1b}[m"), "a&lt;b&gt; &amp; &quot;c&quot;&#10;d?[m");
    }
}
