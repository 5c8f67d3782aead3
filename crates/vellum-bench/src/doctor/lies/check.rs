//! What is there after a cut, against what was promised.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::OFlags;
use vellum_sys::Dir;

use super::place::{
    BLOCK_LEN, FILE_LEN_MAX, SECTOR_LEN, content, dir_in, number_of, opened_in, place, required,
    sector,
};
use super::promises::{Promises, boot_id, filesystem_of, read_head};
use crate::error::{Error, Result};
use crate::report;

/// All files together are shorter.
const ALL_LEN_MAX: u64 = 64 << 20;
/// So many losses are told one by one.
const TOLD_MAX: usize = 12;

/// What became of a block that was promised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Its place has what was there before: an older block, or nothing.
    Forgotten(Option<u64>),
    /// So many of its sectors are there, and others are not.
    Torn(u64),
    /// Its file is not there.
    Missing,
    /// The device or the filesystem does not give it back.
    Unreadable(String),
}

/// A block that was promised and is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Its number.
    pub number: u64,
    /// Its file.
    pub file: String,
    /// What became of it.
    pub loss: Loss,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// After a cut all that was promised is there.
    Honest,
    /// After a cut something is not there that was promised.
    Lied,
    /// Nothing, because of this.
    Nothing(String),
}

/// What was found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Checked {
    /// The highest number that was promised.
    pub promised: u64,
    /// The blocks of those that were looked for; older ones were overwritten or removed.
    pub looked_for: Vec<u64>,
    /// What is not there.
    pub lost: Vec<Lost>,
    /// What follows.
    pub conclusion: Conclusion,
}

/// Looks for what was promised below `dir`. `is_cut` says that the disk was cut off, where this
/// machine was not: then it is no reboot that shows it.
///
/// # Errors
///
/// The directory cannot be looked at.
pub fn check(dir: &Path, promises: &Promises, is_cut: bool) -> Result<Checked> {
    let own = read_head(dir);
    let head = promises.head.as_ref().or(own.as_ref());
    let mut checked = Checked {
        promised: promises.highest,
        looked_for: Vec::new(),
        lost: Vec::new(),
        conclusion: Conclusion::Nothing(String::new()),
    };
    let Some(head) = head else {
        let dir = dir_in(dir);
        checked.conclusion = Conclusion::Nothing(format!(
            "{} is not there, or does not say whose the blocks are. Is the filesystem mounted? A \
             number that was written down is not enough then; a file or another machine would be",
            dir.display()
        ));
        return Ok(checked);
    };
    if own.as_ref().is_some_and(|own| own.run != head.run) {
        return Err(Error::invalid("the witness knows of another run than that of these blocks"));
    }
    look(dir, head.run, &mut checked)?;
    checked.conclusion = match not_known(dir, promises, head.boot, is_cut)? {
        Some(why) => Conclusion::Nothing(why),
        None if checked.looked_for.is_empty() => {
            Conclusion::Nothing("nothing was promised before the cut".into())
        }
        None if checked.lost.is_empty() => Conclusion::Honest,
        None => Conclusion::Lied,
    };
    Ok(checked)
}

/// Why nothing follows from what is there or is not there.
fn not_known(
    dir: &Path,
    promises: &Promises,
    boot: [u8; 16],
    is_cut: bool,
) -> Result<Option<String>> {
    if let Some(head) = &promises.head
        && head.filesystem != filesystem_of(dir)?
    {
        let dir = dir.display();
        return Ok(Some(format!("{dir} is not the filesystem that was tested; is it mounted?")));
    }
    if is_cut {
        return Ok(None);
    }
    let now = boot_id()?;
    Ok(if promises.is_ended {
        Some("the writer ended in good order: the power was not cut while it wrote".into())
    } else if boot == now {
        Some("this machine has not been started again since: the power was not cut".into())
    } else if boot == [0; 16] || now == [0; 16] {
        Some("this kernel does not say whether it was started again since".into())
    } else {
        None
    })
}

/// Looks for each block that must be there.
fn look(tested: &Path, run: u64, checked: &mut Checked) -> Result<()> {
    let dir = opened_in(tested);
    let highest = dir.as_ref().map_or(Ok(0), |dir| highest_in(dir, run))?;
    let begun = highest.max(checked.promised) + 1;
    let mut files: BTreeMap<String, io::Result<File>> = BTreeMap::new();
    for number in required(checked.promised, begun) {
        let place = place(number);
        let open = || {
            let dir = dir.as_ref().map_err(|error| io::Error::from(*error))?;
            Ok(dir.open_file(Path::new(&place.name), OFlags::RDONLY).map(File::from)?)
        };
        let file = files.entry(place.name.clone()).or_insert_with(open);
        checked.looked_for.push(number);
        let loss = match file {
            Ok(file) => loss(run, number, &read(file, place.offset)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Loss::Missing),
            Err(error) => Some(Loss::Unreadable(error.to_string())),
        };
        checked.lost.extend(loss.map(|loss| Lost { number, file: place.name, loss }));
        // Of new files there are many.
        files.retain(|name, _| !name.starts_with("new-"));
    }
    Ok(())
}

/// The highest number of all sectors that are there: what it took the place of is not missed.
fn highest_in(dir: &Dir, run: u64) -> Result<u64> {
    let (mut highest, mut left) = (0, ALL_LEN_MAX);
    // What cannot be looked into is lost, and is told for each block.
    for name in dir.names().unwrap_or_default() {
        let Ok(bytes) = dir.read(Path::new(&name), FILE_LEN_MAX as usize) else { continue };
        left = left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            let path = dir.path().display();
            Error::invalid(format!("{path} has more in it than `doctor --lies` writes"))
        })?;
        for (found, index) in bytes.chunks(SECTOR_LEN).zip((0..BLOCK_LEN / SECTOR_LEN).cycle()) {
            let is_whole = |number: &u64| *found == sector(run, *number, index);
            highest = highest.max(number_of(run, found).filter(is_whole).unwrap_or(0));
        }
    }
    Ok(highest)
}

/// What is at a place; shorter at the end of its file.
fn read(file: &File, offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; BLOCK_LEN];
    let mut len = 0;
    while len < BLOCK_LEN {
        match file.read_at(&mut bytes[len..], offset + len as u64)? {
            0 => break,
            count => len += count,
        }
    }
    bytes.truncate(len);
    Ok(bytes)
}

/// What is wrong with what is at the place of a block; nothing if it is there, or a newer one.
fn loss(run: u64, number: u64, found: &io::Result<Vec<u8>>) -> Option<Loss> {
    let found = match found {
        Ok(found) => found,
        Err(error) => return Some(Loss::Unreadable(error.to_string())),
    };
    let whole = number_of(run, found).filter(|whole| *found == content(run, *whole));
    match whole {
        Some(whole) if whole >= number => return None,
        Some(whole) => return Some(Loss::Forgotten(Some(whole))),
        None => {}
    }
    let expected = content(run, number);
    let sectors = found.chunks(SECTOR_LEN).zip(expected.chunks(SECTOR_LEN));
    let own = sectors.filter(|(found, expected)| found == expected).count() as u64;
    let is_other = found.chunks(SECTOR_LEN).any(|sector| number_of(run, sector).is_some());
    Some(if own > 0 || is_other { Loss::Torn(own) } else { Loss::Forgotten(None) })
}

impl Checked {
    /// For a terminal, at most 100 columns wide.
    pub fn text(&self) -> String {
        let Checked { promised, lost, conclusion, .. } = self;
        let looked_for = self.looked_for.len();
        let mut text = report::wrapped(&match conclusion {
            Conclusion::Honest => format!(
                "Honest so far: all {looked_for} promised blocks that should be there are there."
            ),
            Conclusion::Lied => {
                format!("It lied: of {looked_for} promised blocks, {} are lost.", lost.len())
            }
            Conclusion::Nothing(why) => format!("Nothing can be concluded: {why}."),
        });
        let _ = writeln!(text, "Promised: {promised} blocks. Looked for: {looked_for}.");
        if !lost.is_empty() {
            text.push_str(&report::wrapped(&format!("Lost: {}.", self.ranges())));
        }
        for Lost { number, file, loss } in lost.iter().take(TOLD_MAX) {
            let _ = writeln!(text, "  {number} in {file}: {loss}");
        }
        if lost.len() > TOLD_MAX {
            let _ = writeln!(text, "  and {} more", lost.len() - TOLD_MAX);
        }
        text.push_str(&report::wrapped(match conclusion {
            Conclusion::Honest => {
                "One cut shows little: a cache that lies may have been written by then. Cut again, \
                 at other times and under load."
            }
            Conclusion::Lied => {
                "The disk, or what is in front of it (controller, bridge, hypervisor), said that \
                 these were durable. A crash of the kernel, or a filesystem mounted with \
                 `nobarrier`, would look the same."
            }
            Conclusion::Nothing(_) => {
                "Without a cut nobody can know: what was not written may still be in a cache, and \
                 is read from there. A restart is no cut, because it flushes."
            }
        }));
        text
    }

    /// The numbers that are lost, as ranges.
    fn ranges(&self) -> String {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for Lost { number, .. } in &self.lost {
            match ranges.last_mut() {
                Some((_, last)) if number - *last <= 1 => *last = *number,
                _ => ranges.push((*number, *number)),
            }
        }
        let shown: Vec<String> = ranges
            .iter()
            .take(TOLD_MAX)
            .map(|(first, last)| match first == last {
                true => first.to_string(),
                false => format!("{first}-{last}"),
            })
            .collect();
        let more = if ranges.len() > TOLD_MAX { ", …" } else { "" };
        format!("{}{more}", shown.join(", "))
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::Forgotten(None) => f.write_str("forgotten block: nothing was written there"),
            Loss::Forgotten(Some(older)) => write!(f, "forgotten block: {older} is still there"),
            Loss::Torn(sectors) => {
                let all = BLOCK_LEN / SECTOR_LEN;
                write!(f, "torn block: {sectors} of {all} sectors are there")
            }
            Loss::Missing => f.write_str("the file is missing"),
            Loss::Unreadable(error) => write!(f, "the block cannot be read: {error}"),
        }
    }
}
