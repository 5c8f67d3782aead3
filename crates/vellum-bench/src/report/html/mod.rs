//! A page of one or several reports: the measurements, the findings, charts, tables, the data.
//!
//! It is one file and fetches nothing. Charts are drawn here and are there without a program; the
//! little script sorts tables, switches between light and dark, and shows figures under the
//! pointer.

use super::Report;

mod chart;
mod charts;
mod facts;
mod loads;
mod names;
mod number;
mod page;
mod summary;
mod tables;

/// The reports as one HTML page.
pub fn html(documents: &[Report]) -> String {
    shown(&page::page(documents, None).into_string())
}

/// The findings of the reports, for a terminal: the best way of each suite, and how sure that is.
pub fn findings_text(documents: &[Report]) -> String {
    summary::text(documents)
}

/// [`html`] with a recommendation in words above everything that the figures say by themselves.
/// It is plain text; its line breaks are kept.
pub fn html_with_recommendation(documents: &[Report], recommendation: &str) -> String {
    shown(&page::page(documents, Some(recommendation)).into_string())
}

/// A page in which names of others have nothing that a terminal or a browser obeys.
fn shown(page: &str) -> String {
    vellum::internal::escaped_lines(page).to_string()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
