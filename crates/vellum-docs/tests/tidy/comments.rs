//! How comments read: no clause is used as a noun (as in "reads what it holds"). A noun names the
//! thing.

use crate::figures::{self, Figure};
use crate::files::{Source, named};

/// Free relative clauses in 1000 words of comment, rounded up, of each crate and of `go/`. None of
/// a crate that is not named.
const CLAUSES: [(&str, usize); 7] = [
    ("vellum", 1),
    ("vellum-bench", 4),
    ("vellum-capi", 1),
    ("vellum-doctor", 7),
    ("vellum-ship", 1),
    ("vellum-testkit", 1),
    ("vellum-zoo", 3),
];

const EXTENSIONS: [&str; 6] = ["rs", "go", "c", "h", "hpp", "py"];

/// Words before a clause that is a noun.
const BEFORE: &str = "by of to for from as is and or that with at on than about behind before in \
    into where say says tells does";
/// Words behind `what` that begin such a clause.
const BEHIND: &str = "is was has had a the it they this that others nobody no each may can comes \
    lies stands needs goes follows does did";

/// Free relative clauses in 1000 words of comment: each crate, its ceiling, and where they are.
pub(crate) fn figures() -> Vec<(&'static str, usize, Figure)> {
    let crates = figures::crates();
    let folders = crates.iter().map(|name| (name.as_str(), format!("crates/{name}/")));
    let folders = folders.chain([("go", "go/".to_string())]);
    let row = |(name, folder): (&str, String)| {
        let most = CLAUSES.iter().find(|(known, _)| *known == name).map_or(0, |(_, most)| *most);
        let what = format!("free relative clauses in 1000 words of comment, {name}");
        (&*what.leak(), most, rate(&named(&folder, &EXTENSIONS)))
    };
    folders.map(row).collect()
}

fn rate(sources: &[Source]) -> Figure {
    let (mut words, mut places) = (0, Vec::new());
    for source in sources {
        let mark = if source.name.ends_with(".py") { "#" } else { "//" };
        for (line, number) in source.text.lines().zip(1..) {
            let Some(comment) = comment(line, mark) else { continue };
            words += words_of(comment);
            places.extend((0..clauses(comment)).map(|_| format!("{}:{number}", source.name)));
        }
    }
    ((1000 * places.len()).div_ceil(words.max(1)), places)
}

/// The comment of a line, without its mark.
fn comment<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    let is_mark = |at: &usize| line[..*at].chars().next_back().is_none_or(char::is_whitespace);
    let at = line.match_indices(mark).map(|(at, _)| at).find(is_mark)?;
    let text = &line[at + mark.len()..];
    let text = text.strip_prefix(['/', '!']).unwrap_or(text);
    Some(text.strip_prefix(char::is_whitespace).unwrap_or(text))
}

fn words_of(text: &str) -> usize {
    let parts = text.split(|c: char| !c.is_ascii_alphabetic() && c != '\'');
    parts.filter(|part| !part.is_empty()).count()
}

fn clauses(comment: &str) -> usize {
    let starts = comment.match_indices(['W', 'w']).map(|(at, _)| at);
    starts.filter(|at| is_clause(&comment[..*at], &comment[*at + 1..])).count()
}

/// Whether a clause begins with a word whose first letter is between these two.
fn is_clause(before: &str, behind: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let next = |text: &str| text.split(|c| !is_word(c)).next().unwrap_or_default().to_string();
    let has = |words: &str, word: &str| words.split(' ').any(|known| known == word);
    let begins = match before.strip_suffix(' ') {
        _ if before.is_empty() => true,
        Some(before) if before.ends_with(['.', ';', ':', ',', '(']) => true,
        Some(before) => has(BEFORE, before.rsplit(|c| !is_word(c)).next().unwrap_or_default()),
        None => false,
    };
    let is_what = || behind.strip_prefix("hat ").is_some_and(|rest| has(BEHIND, &next(rest)));
    let is_who = || {
        let rest = behind.strip_prefix("hoever ").or_else(|| behind.strip_prefix("ho "));
        rest.is_some_and(|rest| rest.starts_with(is_word))
    };
    begins && (is_what() || is_who())
}

#[test]
fn a_clause_that_is_a_noun_is_counted_and_a_question_is_not() {
    let nouns = "What it holds, and who waits for it. Whoever does: where what is kept";
    assert_eq!(clauses(nouns), 4);
    assert_eq!(clauses("Shows what it is, the process who waits, somewhat."), 0);
    assert_eq!(comment("    let it = 1; /// Text", "//"), Some("Text"));
    assert_eq!(comment("https://vellum", "//"), None);
    assert_eq!(comment("it = 1  # Text", "#"), Some("Text"));
    assert_eq!(words_of("it's a `word_of` 3"), 4);
}
