//! The client of network block devices, with a server that a test plays.

use std::thread::{JoinHandle, spawn};

use super::*;

const BLOCK: usize = 4096;
const EXPORT_BYTES: u64 = 1 << 20;

/// The reply to a request.
type Reply = fn(&[u8; REQUEST_BYTES]) -> Vec<u8>;

/// A connection whose other end greets, and replies in this way until it is closed; it returns the
/// written bytes, with their places.
fn served(reply: Reply) -> (UnixStream, JoinHandle<Vec<(u64, u8)>>) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let server = spawn(move || {
        let mut written = Vec::new();
        theirs.write_all(&[&GREETING[..], &FLAGS.to_be_bytes()].concat()).unwrap();
        theirs.read_exact(&mut [0; 20]).unwrap();
        theirs.write_all(&[&EXPORT_BYTES.to_be_bytes()[..], &[0, 1]].concat()).unwrap();
        let mut request = [0; REQUEST_BYTES];
        while theirs.read_exact(&mut request).is_ok() {
            if request[7] == Command::Write as u8 {
                let mut bytes = [0; BLOCK];
                theirs.read_exact(&mut bytes).unwrap();
                written.push((u64::from_be_bytes(request[16..24].try_into().unwrap()), bytes[0]));
            }
            theirs.write_all(&reply(&request)).unwrap();
        }
        written
    });
    (ours, server)
}

fn replied(request: &[u8; REQUEST_BYTES], error: u32) -> Vec<u8> {
    [&REPLY_MAGIC.to_be_bytes()[..], &error.to_be_bytes(), &request[8..16]].concat()
}

fn good(request: &[u8; REQUEST_BYTES]) -> Vec<u8> {
    replied(request, 0)
}

#[test]
fn each_slot_is_written_over_its_connection_and_comes_back_once() {
    assert_eq!((connections(1), connections(16), connections(17), connections(32)), (1, 1, 2, 2));
    let (streams, servers): (Vec<_>, Vec<_>) = [served(good), served(good)].into_iter().unzip();
    let mut queue = NbdQueue::new(streams, 20, BLOCK).unwrap();
    assert_eq!(queue.export_bytes(), EXPORT_BYTES);
    for slot in 0..20 {
        queue.buffer(slot).fill(slot as u8);
        queue.write(slot, 0..BLOCK, (slot * BLOCK) as u64).unwrap();
    }
    let mut done = Vec::new();
    while done.len() < 20 {
        queue.wait(&mut done).unwrap();
    }
    done.sort_unstable();
    assert_eq!(done, (0..20).collect::<Vec<_>>());
    queue.wait(&mut done).unwrap();
    assert_eq!(done.len(), 20, "nothing is on its way");
    queue.flush().unwrap();
    drop(queue);
    let written = servers.into_iter().map(|server| server.join().unwrap());
    let written: Vec<Vec<(u64, u8)>> = written.collect();
    assert_eq!((written[0].len(), written[1].len()), (16, 4));
    for (offset, byte) in written.concat() {
        assert_eq!(offset, u64::from(byte) * BLOCK as u64);
    }
}

#[test]
fn a_server_that_fails_or_talks_otherwise_or_goes_is_an_error() {
    let write = |reply: Reply| {
        let (stream, _server) = served(reply);
        let mut queue = NbdQueue::new(vec![stream], 1, BLOCK).unwrap();
        queue.write(0, 0..BLOCK, 0).unwrap();
        queue.wait(&mut Vec::new()).unwrap_err().to_string()
    };
    let full = write(|request| replied(request, 28));
    assert_eq!(full, "the NBD server: No space left on device (os error 28)");
    assert!(write(|_| vec![7; REPLY_BYTES]).contains("not reply as expected"));
    let other = write(|request| [&good(request)[..15], &[9]].concat());
    assert!(other.contains("not reply as expected"), "a slot that is not on its way: {other}");
    let (stream, mut gone) = UnixStream::pair().unwrap();
    gone.write_all(b"HTTP/1.1 400 Bad Request").unwrap();
    let error = NbdQueue::new(vec![stream], 1, BLOCK).err().unwrap().to_string();
    assert_eq!(error, "talk to the NBD server: it greets in another way");
}
