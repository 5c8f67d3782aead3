//! For measuring by hand: a large shipped log.

use vellum::Options;
use vellum_ship::store::open_or_create;

use crate::hand::Hand;

/// Ships a gigabyte in the form of merged objects of 64 MiB to `VELLUM_SHIP_LARGE`, a directory.
#[tokio::test]
#[ignore = "makes a gigabyte, to be restored by hand"]
async fn make_a_large_one() {
    let dir = std::env::var("VELLUM_SHIP_LARGE").expect("VELLUM_SHIP_LARGE is a directory");
    let log = std::path::Path::new(&dir).join("log");
    let log = Options::events().open(log).unwrap();
    let (mut state, mut record) = (1_u64, vec![0; 1 << 10]);
    for _ in 0..1 << 20 {
        for word in record.chunks_exact_mut(8) {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            word.copy_from_slice(&state.to_le_bytes());
        }
        log.append(&record).unwrap();
    }
    log.sync().unwrap();
    let url = format!("file://{dir}/store");
    let mut hand = Hand::begin_in(&log, open_or_create(&url).unwrap()).await;
    hand.ship(8 << 20).await;
}
