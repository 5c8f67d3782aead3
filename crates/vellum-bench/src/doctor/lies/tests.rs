//! What is found of blocks that were changed, removed and torn, as a power cut might.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::place::{BLOCK_LEN, OVERWRITTEN, Way, content, place, required};
use super::*;
use crate::error::Result;

/// A witness in memory.
#[derive(Default)]
struct Memory(String);

impl Witness for Memory {
    fn hear(&mut self, line: &str) -> Result<()> {
        self.0.push_str(line);
        self.0.push('\n');
        Ok(())
    }
}

fn written(dir: &Path, blocks: u64) -> Memory {
    let mut memory = Memory::default();
    let limits = Limits { blocks: Some(blocks), time: None };
    assert_eq!(write(dir, &mut memory, limits).unwrap(), blocks);
    memory
}

fn promises(dir: &Path, memory: &Memory) -> Promises {
    Promises::parse(&memory.0, dir).unwrap()
}

#[test]
fn what_must_be_there_is_there_at_every_number() {
    let (mut blocks, mut highest) = (BTreeMap::new(), 0);
    for number in 1..25_000u64 {
        let place = place(number);
        if let Some(removed) = &place.removed {
            blocks.retain(|(name, _): &(String, u64), _| name != removed);
        }
        blocks.insert((place.name, place.offset), number);
        highest = highest.max(blocks.len());
        // The one that was begun last was not promised.
        if number % 977 == 0 {
            for required in required(number - 1, number) {
                let place = super::place::place(required);
                assert_eq!(blocks.get(&(place.name, place.offset)), Some(&required));
            }
        }
    }
    assert!(highest <= 3 * 1024 + 64 + 257, "{highest} blocks at once");
    assert!(required(24_000, 24_001).len() > 1024 + 63 + 250);
}

#[test]
fn nothing_is_concluded_without_a_cut() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = written(dir.path(), 30);
    let checked = check(dir.path(), &promises(dir.path(), &memory), false).unwrap();
    assert_eq!((checked.promised, checked.looked_for.len(), checked.lost.len()), (30, 30, 0));
    assert!(matches!(checked.conclusion, Conclusion::Nothing(_)));
    assert!(checked.text().contains("has not been started again"), "{}", checked.text());
    let checked = check(dir.path(), &promises(dir.path(), &memory), true).unwrap();
    assert_eq!(checked.conclusion, Conclusion::Honest);
    // Another boot, as after a cut of this machine.
    let boot = memory.0.split("boot=").nth(1).unwrap()[..32].to_string();
    let other = "0123456789abcdef".repeat(2);
    fs::write(dir.path().join(DIR_NAME).join("run"), "").unwrap();
    memory.0 = memory.0.replace(&boot, &other);
    let checked = check(dir.path(), &promises(dir.path(), &memory), false).unwrap();
    assert_eq!(checked.conclusion, Conclusion::Honest);
    memory.end().unwrap();
    let checked = check(dir.path(), &promises(dir.path(), &memory), false).unwrap();
    assert!(checked.text().contains("good order"), "{}", checked.text());
    memory.0 = memory.0.replace("filesystem=", "filesystem=9");
    let checked = check(dir.path(), &promises(dir.path(), &memory), true).unwrap();
    assert!(checked.text().contains("is it mounted?"), "{}", checked.text());
}

#[test]
fn each_kind_of_loss_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let memory = written(dir.path(), 400);
    let promises = promises(dir.path(), &memory);
    let run = promises.head.as_ref().unwrap().run;
    let path = |name: &str| dir.path().join(DIR_NAME).join(name);
    let open = |name: &str| File::options().write(true).open(path(name)).unwrap();
    let put = |number: u64, bytes: &[u8]| {
        let place = place(number);
        open(&place.name).write_all_at(bytes, place.offset).unwrap();
    };
    // Nothing, an older one, half of it, and no file.
    put(301, &[0; BLOCK_LEN]);
    assert_eq!(place(398).way, Way::Overwritten);
    put(398, &content(run, 398 - 192));
    put(304, &content(run, 304)[..2048]);
    open("grown-0").write_all_at(&[0; 2048], place(304).offset + 2048).unwrap();
    fs::remove_file(path(&place(300).name)).unwrap();
    let checked = check(dir.path(), &promises, true).unwrap();
    assert_eq!(checked.conclusion, Conclusion::Lied);
    let found: Vec<(u64, Loss)> =
        checked.lost.iter().map(|lost| (lost.number, lost.loss.clone())).collect();
    let expected = [
        (300, Loss::Missing),
        (301, Loss::Forgotten(None)),
        (304, Loss::Torn(4)),
        (398, Loss::Forgotten(Some(206))),
    ];
    assert_eq!(found, expected);
    let text = checked.text();
    assert!(text.contains("Lost: 300-301, 304, 398."), "{text}");
    assert!(text.contains("  398 in overwritten: forgotten block: 206 is still there"), "{text}");
}

#[test]
fn a_directory_that_cannot_be_looked_into_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let promises = promises(dir.path(), &written(dir.path(), 9));
    fs::remove_dir_all(dir.path().join(DIR_NAME)).unwrap();
    fs::write(dir.path().join(DIR_NAME), "a file").unwrap();
    let checked = check(dir.path(), &promises, true).unwrap();
    assert_eq!((checked.lost.len(), checked.conclusion), (9, Conclusion::Lied));
    assert!(matches!(checked.lost[0].loss, Loss::Unreadable(_)));
}

#[test]
fn a_block_that_was_being_overwritten_may_be_torn() {
    let dir = tempfile::tempdir().unwrap();
    let memory = written(dir.path(), 400);
    let promises = promises(dir.path(), &memory);
    let run = promises.head.as_ref().unwrap().run;
    // 401 was begun and not promised; 402 is none that overwrites.
    let place = place(401);
    assert_eq!(place.way, Way::Overwritten);
    let file = File::options().write(true).open(dir.path().join(DIR_NAME).join(OVERWRITTEN));
    file.unwrap().write_all_at(&content(run, 401)[..512], place.offset).unwrap();
    let checked = check(dir.path(), &promises, true).unwrap();
    assert_eq!(checked.conclusion, Conclusion::Honest, "{}", checked.text());
}

#[test]
fn a_number_that_was_written_down_is_enough() {
    let dir = tempfile::tempdir().unwrap();
    let mut output = Vec::new();
    let mut terminal = Terminal::new(&mut output);
    let limits = Limits { blocks: Some(20), time: None };
    write(dir.path(), &mut terminal, limits).unwrap();
    let output = String::from_utf8(output).unwrap();
    assert!(output.starts_with("vellum-lies 1 run=") && output.contains("\n1\n"), "{output}");
    let checked = check(dir.path(), &Promises::up_to(9), true).unwrap();
    assert_eq!((checked.looked_for.len(), checked.conclusion), (9, Conclusion::Honest));
    fs::remove_dir_all(dir.path().join(DIR_NAME)).unwrap();
    let checked = check(dir.path(), &Promises::up_to(9), true).unwrap();
    assert!(checked.text().contains("Is the filesystem mounted?"), "{}", checked.text());
}

#[test]
fn another_machine_is_a_witness() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::new("127.0.0.1:0", &other.path().join("promises")).unwrap();
    let address = server.address().unwrap().to_string();
    std::thread::spawn(move || server.run());
    let limits = Limits { blocks: Some(50), time: None };
    write(dir.path(), &mut tcp_witness(&address).unwrap(), limits).unwrap();
    let promises = Promises::asked(&address, dir.path()).unwrap();
    assert_eq!(promises.highest(), 50);
    let checked = check(dir.path(), &promises, true).unwrap();
    assert_eq!((checked.looked_for.len(), checked.conclusion), (50, Conclusion::Honest));
    // A second run with the same witness.
    fs::rename(dir.path().join(DIR_NAME), dir.path().join("before")).unwrap();
    write(dir.path(), &mut tcp_witness(&address).unwrap(), limits).unwrap();
    assert_eq!(Promises::asked(&address, dir.path()).unwrap().highest(), 50);
}

#[test]
fn a_file_on_the_same_disk_is_no_witness() {
    let dir = tempfile::tempdir().unwrap();
    let error = file_witness(&dir.path().join("promises"), dir.path()).err().unwrap();
    assert!(error.to_string().contains("the cut reaches it too"), "{error}");
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        return vellum_testing::missing::skip("/dev/shm cannot be written to");
    };
    let path = memory.path().join("promises");
    let mut witness = file_witness(&path, dir.path()).unwrap();
    write(dir.path(), &mut witness, Limits { blocks: Some(5), time: None }).unwrap();
    witness.end().unwrap();
    // What was being written when the power went is no promise.
    let text = fs::read_to_string(&path).unwrap() + "7";
    let promises = Promises::parse(&text, dir.path()).unwrap();
    assert_eq!((promises.highest(), promises.is_ended), (5, true));
    let error = write(dir.path(), &mut witness, Limits::default()).unwrap_err();
    assert!(error.to_string().contains("Remove it then"), "{error}");
}
