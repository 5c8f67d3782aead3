//! A directory in memory for the files of one case.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::case::Case;
use super::frames::reseal;
use super::golden::Files;

/// A directory that goes when this is dropped.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new() -> Place {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = parent.join(format!("fuzz-of-vellum-{}-{number}", std::process::id()));
        fs::create_dir_all(&dir).expect("room for a directory");
        Place(dir)
    }

    /// The place of the case's log.
    pub(crate) fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    /// Where another log may be made.
    pub(crate) fn other(&self) -> PathBuf {
        self.0.join("other")
    }

    /// Puts the files of the case there.
    pub(crate) fn fill(&self, case: &Case) {
        fs::create_dir_all(self.log()).expect("room for a directory");
        for (name, bytes) in &case.files {
            fs::write(self.log().join(name), bytes).expect("room for a file");
        }
        if case.is_same_boot {
            self.set_boot("geometry", this_boot());
        }
        if case.has_control {
            let geometry = &case.files["geometry"];
            // The words of another boot mean nothing.
            let mut control = vec![0x5a; case.golden.expected.control_len as usize];
            control[..4096].fill(0);
            control[..geometry.len()].copy_from_slice(geometry);
            fs::write(self.log().join("control"), control).expect("room for a file");
        }
    }

    /// Makes an unused log one of another boot, or takes its control file away.
    pub(crate) fn reboot(&self, loses_control: bool) {
        self.set_boot("geometry", *b"yet another boot");
        if loses_control {
            fs::remove_file(self.log().join("control")).expect("the control file");
        } else {
            self.set_boot("control", *b"yet another boot");
        }
    }

    fn set_boot(&self, name: &str, boot: [u8; 16]) {
        let path = self.log().join(name);
        let mut bytes = fs::read(&path).expect("a file that is there");
        if bytes.len() >= 72 {
            bytes[48..64].copy_from_slice(&boot);
            reseal(&mut bytes, 72);
            fs::write(&path, bytes).expect("room for a file");
        }
    }

    /// The files of the log as they are now.
    pub(crate) fn files(&self) -> Files {
        let entries = fs::read_dir(self.log()).expect("the log's directory");
        let mut files = Files::new();
        for entry in entries {
            let entry = entry.expect("readable");
            let name = entry.file_name().into_string().expect("plain names");
            files.insert(name, fs::read(entry.path()).expect("a readable file"));
        }
        files
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The boot id of the kernel as it is in files.
fn this_boot() -> [u8; 16] {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).unwrap_or(1).to_be_bytes()
}
