//! Takes credentials out of texts.

use vellum::internal::escaped;

/// The longest text of an error that is kept, in bytes: servers answer with whole pages.
const MAX_TEXT: usize = 600;
/// Shorter values are not taken for secrets: they would punch holes into ordinary words.
const MIN_SECRET: usize = 6;
const HIDDEN: &str = "[hidden]";
/// Variables of the environment whose values are secret have one of these in their names.
const SECRET_NAMES: [&str; 7] =
    ["SECRET", "TOKEN", "PASSWORD", "ACCESS_KEY", "ACCOUNT_KEY", "MASTER_KEY", "_SAS"];
/// The variables that may hold secrets of stores begin with one of these.
const STORE_NAMES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];
/// More variables that hold secrets.
const MORE: [&str; 4] = [
    "GOOGLE_SERVICE_ACCOUNT_KEY",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AWS_SSE_CUSTOMER_KEY_BASE64",
];

/// The text on one line, cut, without what a terminal obeys, without the queries of URLs (Azure
/// signs there) and without any value of the environment that is a credential.
pub(super) fn redact(text: &str) -> String {
    let line = text.split_whitespace().map(hide_query).collect::<Vec<_>>().join(" ");
    let line = secrets().fold(line, |line, secret| line.replace(&secret, HIDDEN));
    cut(escaped(line).to_string())
}

/// The value of a variable is secret by the variable's name.
fn is_secret(name: &str) -> bool {
    MORE.contains(&name)
        || (STORE_NAMES.iter().any(|begin| name.starts_with(begin))
            && SECRET_NAMES.iter().any(|part| name.contains(part))
            && !name.ends_with("_FILE"))
}

fn secrets() -> impl Iterator<Item = String> {
    std::env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        (is_secret(&name) && value.len() >= MIN_SECRET).then_some(value)
    })
}

/// A word that is a URL loses its user and its query.
fn hide_query(word: &str) -> String {
    let Some(scheme) = word.find("://") else { return word.to_string() };
    let (head, rest) = word.split_at(scheme + 3);
    let (rest, query) = rest.split_once('?').map_or((rest, ""), |(rest, _)| (rest, "?"));
    let end = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let (user, host) = host.rsplit_once('@').map_or(("", host), |(_, host)| (HIDDEN, host));
    let at = if user.is_empty() { "" } else { "@" };
    let hidden = if query.is_empty() { "" } else { HIDDEN };
    format!("{head}{user}{at}{host}{path}{query}{hidden}")
}

fn cut(mut line: String) -> String {
    if line.len() > MAX_TEXT {
        let end = (0..=MAX_TEXT).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
        line.truncate(end);
        line.push_str(" ...");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_queries_of_urls_are_hidden() {
        let text = redact("GET https://key:s3cret@host:9/b/k?sig=abc%3D&se=1 failed\n twice");
        assert_eq!(text, "GET https://[hidden]@host:9/b/k?[hidden] failed twice");
        assert_eq!(redact("no /path?x here"), "no /path?x here");
    }

    #[test]
    fn a_terminal_obeys_nothing_of_it() {
        assert_eq!(redact("\u{1b}]0;x\u{7} \u{202e}y"), "\\u{1b}]0;x\\u{7} \\u{202e}y");
    }

    #[test]
    fn credentials_are_known_by_the_names_of_their_variables() {
        for name in ["AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", MORE[2]] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["AWS_REGION", "AWS_WEB_IDENTITY_TOKEN_FILE", "MY_SECRET"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = redact(&"ä".repeat(1000));
        assert!(text.len() <= MAX_TEXT + 4 && text.ends_with(" ..."));
    }
}
