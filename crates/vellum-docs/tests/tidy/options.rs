//! Messages of the library name an option between two marks, so that the command can tell it as it
//! was typed.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::figures;
use crate::files::Source;
use crate::modules::Crate;

/// The mark before and behind the name of an option in a message.
const MARK: char = '\0';
/// Words behind which a message names an option that is a common word otherwise.
const BEFORE_A_NAME: [&str; 5] = ["choose", "leave out", "ask for", "is set with", "created with"];

/// Places where a message names an option and does not mark it.
pub(crate) fn faults() -> Vec<String> {
    let library = Crate::read("vellum");
    let options = ["Options", "Tuning"].iter().flat_map(|of| figures::method_names(&library, of));
    let options: BTreeSet<String> = options.collect();
    let mut faults = Vec::new();
    for source in
        crate::LIBRARY.iter().flat_map(|name| Source::below(&format!("crates/{name}/src/")))
    {
        let code = source.code_lines().count();
        let tokens: TokenStream = source.text.parse().unwrap();
        let mut found = Vec::new();
        literals(tokens, &mut found);
        for (line, text) in found.into_iter().filter(|(line, _)| *line <= code) {
            let bare: String = text.split(MARK).step_by(2).collect::<Vec<_>>().join(" ");
            if bare.contains("Options::") || bare.contains("Tuning::") {
                faults.push(format!("{}:{line}: a name of Rust", source.name));
            }
            let named = options.iter().filter(|name| text != **name && is_named(&bare, name));
            faults.extend(named.map(|name| format!("{}:{line}: {name}", source.name)));
        }
    }
    faults
}

/// Whether a message without its marked names has this one.
fn is_named(text: &str, name: &str) -> bool {
    let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(name).any(|(at, _)| {
        let (before, behind) = (&text[..at], &text[at + name.len()..]);
        let is_whole = !before.ends_with(is_of_name) && !behind.starts_with(is_of_name);
        let before = before.trim_end_matches(['`', ' ']);
        let is_option =
            name.contains('_') || BEFORE_A_NAME.iter().any(|word| before.ends_with(word));
        is_whole && is_option
    })
}

/// The texts in code with their lines, those of attributes and comments left out.
fn literals(tokens: TokenStream, found: &mut Vec<(usize, String)>) {
    let mut is_attribute = false;
    for token in tokens {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                is_attribute = true;
                continue;
            }
            TokenTree::Punct(punct) if punct.as_char() == '!' && is_attribute => continue,
            TokenTree::Group(group)
                if !(is_attribute && group.delimiter() == Delimiter::Bracket) =>
            {
                literals(group.stream(), found);
            }
            TokenTree::Literal(literal) => {
                let line = literal.span().start().line;
                let text = syn::parse_str::<syn::LitStr>(&literal.to_string());
                found.extend(text.map(|text| (line, text.value())));
            }
            _ => {}
        }
        is_attribute = false;
    }
}

#[test]
fn a_name_is_found_where_it_is_no_common_word() {
    assert!(is_named("leave out compress", "compress"));
    assert!(is_named("choose `fill` mapped", "fill"));
    assert!(!is_named("cannot compress it", "compress"));
    assert!(is_named("the rotate_bytes of it", "rotate_bytes"));
    assert!(!is_named("my_rotate_bytes", "rotate_bytes"));
}
