//! All queues, with files as they are here.

use std::fs::File;

use super::*;
use crate::ErrorKind;

const BLOCK: usize = 4096;
const DEPTH: usize = 8;

type Open = fn(File, usize, usize) -> Result<Box<dyn WriteQueue>>;

fn queues() -> [Open; 4] {
    [
        |file, depth, bytes| Ok(Box::new(AioQueue::new(file, depth, bytes)?)),
        |file, depth, bytes| Ok(Box::new(UringQueue::new(file, depth, bytes)?)),
        |file, depth, bytes| Ok(Box::new(UringQueue::new(file, depth, bytes)?.registered())),
        |file, depth, bytes| Ok(Box::new(ThreadQueue::new(file, depth, bytes)?)),
    ]
}

/// For each queue that this system has, an empty file and the queue for it.
fn each(test: impl Fn(&Path, Box<dyn WriteQueue>)) {
    for open in queues() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        File::create_new(&path).unwrap();
        match open_direct(&path).and_then(|file| open(file, DEPTH, 2 * BLOCK)) {
            Ok(queue) => test(&path, queue),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
                vellum_testing::missing::skip(error);
            }
        }
    }
}

/// Waits until `count` writes have been done.
fn wait_for(queue: &mut dyn WriteQueue, count: usize) -> Vec<usize> {
    let mut done = Vec::new();
    while done.len() < count {
        queue.wait(&mut done).unwrap();
    }
    done.sort_unstable();
    done
}

#[test]
fn each_slot_comes_back_once_and_its_bytes_are_where_they_belong() {
    each(|path, mut queue| {
        for turn in 0..3_u8 {
            for slot in 0..DEPTH {
                // Not always the beginning of the buffer.
                let start = slot % 2 * BLOCK;
                let bytes = start..start + BLOCK;
                queue.buffer(slot)[bytes.clone()].fill(16 * turn + slot as u8 + 1);
                let place = (usize::from(turn) * DEPTH + slot) * BLOCK;
                queue.write(slot, bytes, place as u64).unwrap();
            }
            assert_eq!(wait_for(queue.as_mut(), DEPTH), (0..DEPTH).collect::<Vec<usize>>());
        }
        let mut none = Vec::new();
        queue.wait(&mut none).unwrap();
        assert!(none.is_empty(), "nothing is on its way");
        drop(queue);
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(bytes.len(), 3 * DEPTH * BLOCK);
        for (index, block) in bytes.chunks(BLOCK).enumerate() {
            let byte = (16 * (index / DEPTH) + index % DEPTH + 1) as u8;
            assert!(block.iter().all(|found| *found == byte), "block {index}");
        }
    });
}

#[test]
fn zeroing_comes_before_the_write_that_needs_it() {
    each(|path, mut queue| {
        std::fs::write(path, vec![9; 4 * BLOCK]).unwrap();
        queue.buffer(0).fill(1);
        let zero = Zero { offset: BLOCK as u64, len: 2 * BLOCK as u64 };
        let handed_in = queue.zero_and_write(0, zero, 0..BLOCK, 2 * BLOCK as u64);
        let mut done = Vec::new();
        match handed_in.and_then(|()| queue.wait(&mut done)) {
            Ok(()) => assert_eq!(done, [0]),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
                assert!(error.to_string().contains("ZERO_RANGE"), "{error}");
                return vellum_testing::missing::skip(error);
            }
        }
        drop(queue);
        let bytes = std::fs::read(path).unwrap();
        let firsts: Vec<u8> = bytes.chunks(BLOCK).map(|block| block[0]).collect();
        assert_eq!(firsts, [9, 0, 1, 9]);
    });
}

#[test]
#[should_panic(expected = "nobody changes what is being written")]
fn a_buffer_on_its_way_is_out_of_reach() {
    let mut slots = Slots::new(1, BLOCK);
    slots.take(0, 0..BLOCK);
    slots.buffer(0);
}

#[test]
fn a_queue_that_is_dropped_waits_for_its_writes() {
    each(|path, mut queue| {
        for slot in 0..DEPTH {
            queue.buffer(slot).fill(7);
            queue.write(slot, 0..BLOCK, (slot * BLOCK) as u64).unwrap();
        }
        // One wait submits all and waits for one of them.
        queue.wait(&mut Vec::new()).unwrap();
        drop(queue);
        assert_eq!(std::fs::read(path).unwrap(), vec![7; DEPTH * BLOCK]);
    });
}

#[test]
fn a_short_write_is_a_failure() {
    let mut slots = Slots::new(1, BLOCK);
    slots.take(0, 0..BLOCK);
    let error = slots.give_back(0, 512).unwrap_err();
    assert!(error.to_string().contains("512 of 4096"), "{error}");
}
