//! Objects of every kind as files: objects of older versions must stay readable, and objects of
//! today must have the same bytes. `golden/*.object` are never changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use vellum_ship::object::{
    self, BadObject, Built, FileMark, Hash, Header, Identity, Kind, Link, Mark, hash,
};

const LOG_ID: [u8; 16] = *b"golden log id 16";
const SECOND: u64 = 1_000_000_000;
const START: u64 = 4096;

/// Bytes that do not shrink.
fn noise(len: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x as u8
    };
    (0..len).map(|_| next()).collect()
}

fn text() -> Vec<u8> {
    (0..40).flat_map(|line| format!("a line like the one before, {line}\n").into_bytes()).collect()
}

fn link(start: u64, raw: &[u8], file: Option<FileMark>) -> Link {
    Link { start, end: start + raw.len() as u64, file, content: hash(raw) }
}

fn draft(kind: Kind, before: Hash, link: Link) -> Header {
    let header = Header::draft(kind, 3, before, link);
    Header { log_id: LOG_ID, nonce: 0x0102_0304, time: 1_700_000_000 * SECOND, ..header }
}

fn file() -> Option<FileMark> {
    Some(FileMark { time: Some(1_699_999_999), is_continuation: true })
}

fn at_end() -> Link {
    Link { start: START, end: START, file: None, content: Hash::default() }
}

fn merged(before: Hash, first_after: Option<Hash>) -> Built {
    let raw = noise(96);
    let (first, second) = raw.split_at(40);
    let one = link(START, first, file());
    let two = link(one.end, second, None);
    let after = two.after(one.after(before));
    let mark = |end, time, after| Mark { end, time: time * SECOND, after };
    let marks = [
        mark(one.end, 1_700_000_001, first_after.unwrap_or(one.after(before))),
        mark(two.end, 1_700_000_002, after),
    ];
    let header = draft(Kind::Merged, before, link(START, &raw, file()));
    object::merged(Header { after, ..header }, &marks, &raw)
}

fn identity() -> Vec<u8> {
    let identity = Identity {
        log_id: "676f6c64656e206c6f67206964203136".to_string(),
        layout: "framed".to_string(),
        segment_bytes: 64 << 20,
        shape: "00ff10".to_string(),
        begin: START,
        time: 1_700_000_000 * SECOND,
    };
    identity.encode(LOG_ID, 7).to_vec()
}

/// The objects that today's code makes.
fn made() -> BTreeMap<&'static str, Vec<u8>> {
    let before = hash(b"what came before");
    let chunk =
        |raw: &[u8], file| object::build(draft(Kind::Chunk, before, link(START, raw, file)), raw);
    let lost = Link { end: START + 100, ..at_end() };
    let seal =
        Header { fork: START - 96, after: Hash::default(), ..draft(Kind::Seal, before, at_end()) };
    let bytes = |built: Built| built.bytes.to_vec();
    BTreeMap::from([
        ("log", identity()),
        ("chunk", bytes(chunk(&noise(100), file()))),
        ("chunk-zstd", bytes(chunk(&text(), None))),
        ("gap", bytes(object::gap(draft(Kind::Gap, before, lost)))),
        ("seal", bytes(object::seal(seal))),
        ("merged", bytes(merged(before, None))),
        ("closed", bytes(object::closed(draft(Kind::Closed, before, at_end())))),
    ])
}

fn path(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    dir.join(format!("{name}.object"))
}

fn stored(name: &str) -> Vec<u8> {
    fs::read(path(name)).unwrap_or_else(|error| panic!("{}: {error}", path(name).display()))
}

/// Everything that is read of an object.
#[derive(Debug, PartialEq)]
struct Seen {
    header: Header,
    raw: Vec<u8>,
    marks: Vec<Mark>,
    identity: Option<Identity>,
}

fn read(name: &str, bytes: &[u8]) -> Result<Seen, BadObject> {
    if name == "log" {
        let (identity, header, _) = Identity::decode(bytes)?;
        return Ok(Seen { header, raw: Vec::new(), marks: Vec::new(), identity: Some(identity) });
    }
    let (header, raw) = object::open(&bytes::Bytes::copy_from_slice(bytes))?;
    let marks = match header.kind {
        Kind::Merged => object::marks(&header, bytes)?,
        _ => Vec::new(),
    };
    Ok(Seen { header, raw: raw.to_vec(), marks, identity: None })
}

/// For a kind that is new. A file that exists is never written again.
#[test]
#[ignore = "it writes what is missing"]
fn write_what_is_missing() {
    for (name, bytes) in made() {
        if !path(name).exists() {
            fs::write(path(name), bytes).unwrap();
        }
    }
}

/// Another version of zstd may make other bytes of `chunk-zstd`. Then it is compared as it is read.
#[test]
fn what_is_made_today_is_what_was_stored() {
    for (name, bytes) in made() {
        assert!(bytes == stored(name), "{name} has other bytes than before");
    }
}

#[test]
fn what_was_stored_is_read() {
    let seen = |name| read(name, &stored(name)).unwrap();
    let kinds = [
        ("log", Kind::Log),
        ("chunk", Kind::Chunk),
        ("chunk-zstd", Kind::Chunk),
        ("gap", Kind::Gap),
        ("seal", Kind::Seal),
        ("merged", Kind::Merged),
        ("closed", Kind::Closed),
    ];
    for (name, kind) in kinds {
        assert_eq!(seen(name).header.kind, kind, "{name}");
        assert_eq!(seen(name).header.log_id, LOG_ID, "{name}");
    }
    assert_eq!(seen("log").identity.unwrap().segment_bytes, 64 << 20);
    assert_eq!((seen("chunk").raw, seen("chunk").header.file), (noise(100), file()));
    assert_eq!((seen("chunk-zstd").raw, seen("chunk-zstd").header.zstd), (text(), true));
    assert_eq!(seen("gap").header.end, START + 100);
    assert_eq!(seen("seal").header.fork, START - 96);
    assert_eq!((seen("merged").raw, seen("merged").marks.len()), (noise(96), 2));
    assert_eq!(seen("merged").marks[1].time, 1_700_000_002 * SECOND);
    assert_eq!(seen("closed").header.start, START);
}

/// Each bit, and each byte as a whole.
#[test]
fn a_byte_that_changed_is_refused_or_changes_nothing() {
    for name in made().into_keys() {
        let whole = stored(name);
        let seen = read(name, &whole).unwrap();
        let flips = (0..8).map(|bit| 1_u8 << bit).chain([0xff]);
        for (at, flip) in (0..whole.len()).flat_map(|at| flips.clone().map(move |flip| (at, flip)))
        {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            if let Ok(other) = read(name, &bytes) {
                assert_eq!(other, seen, "{name}: byte {at} ^ {flip:#x} was not noticed");
            }
        }
    }
}

#[test]
fn an_object_that_is_longer_or_shorter_is_refused() {
    for name in made().into_keys() {
        let whole = stored(name);
        for length in 0..whole.len() {
            assert!(read(name, &whole[..length]).is_err(), "{name}: {length} bytes");
        }
        let longer = [&whole[..], &[0]].concat();
        assert!(read(name, &longer).is_err(), "{name}: one byte more");
    }
}

/// The maker of such a mark also makes its checksums.
#[test]
fn marks_that_do_not_follow_from_the_bytes_are_refused() {
    let built = merged(hash(b"what came before"), Some(hash(b"another")));
    assert_eq!(read("merged", &built.bytes), Err(BadObject::Chain));
}
