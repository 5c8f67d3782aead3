//! Pieces of Markdown, in which nothing that others wrote is a sign.

/// A row of a table.
pub(super) fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<String>>().join(" | "))
}

/// A list.
pub(crate) fn list(items: impl Iterator<Item = String>) -> String {
    items.map(|item| format!("- {}\n", cell(&item))).collect()
}

/// Text that Markdown shows as it is: no sign in it breaks a table or becomes a style.
pub(super) fn cell(text: &str) -> String {
    let mut cell = String::new();
    for sign in text.trim().chars() {
        if matches!(sign, '|' | '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' | '#') {
            cell.push('\\');
        }
        cell.push(if sign == '\n' { ' ' } else { sign });
    }
    cell
}
