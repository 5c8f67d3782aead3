//! A report as Markdown, for an issue or a page of documentation.

use super::Report;
use super::group::Group;
use super::markdown_text::{cell, list};

impl Report {
    /// The report as Markdown: conditions, a table for each filesystem and heading, the reasons of
    /// cases without numbers, the warnings.
    pub fn to_markdown(&self) -> String {
        let groups = Group::all(&self.cases);
        let tables: String = groups.iter().map(|group| group.sheet(true).to_markdown()).collect();
        let mut foot = list(self.notes().into_iter());
        if !foot.is_empty() {
            foot.insert(0, '\n');
        }
        let conditions = list(self.conditions().into_iter());
        format!("# vellum bench {}\n\n{conditions}{tables}{foot}", cell(&self.suite))
    }

    fn conditions(&self) -> Vec<String> {
        let mut lines = self.lines();
        lines.iter_mut().last().into_iter().for_each(|about| about.push_str("; shown are medians"));
        if let Some([load, ..]) = self.conditions.load_average {
            lines.push(format!("load average {load:.2} before the start"));
        }
        lines
    }
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
