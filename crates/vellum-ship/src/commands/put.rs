//! `vellum-ship put`: the throughput of a store for objects of one size, with nothing else around
//! it. Shipping is compared with this limit.

use std::time::Instant;

use bytes::Bytes;
use clap::Args;
use futures_util::{StreamExt, TryStreamExt, stream};
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output::print_json;
use vellum_ship::store;

/// Create objects in a store, and say how fast that was
#[derive(Args, Debug)]
pub(super) struct PutArgs {
    /// Where the objects go; they stay there
    url: String,
    /// How many
    #[arg(long, default_value_t = 128)]
    objects: u64,
    /// Bytes of each
    #[arg(long, default_value_t = 8 << 20)]
    bytes: usize,
    /// Requests in flight
    #[arg(long, default_value_t = 4)]
    jobs: usize,
}

pub(super) async fn run(args: PutArgs) -> Result<Outcome> {
    let store = store::open_or_create(&args.url)?;
    let begun = Instant::now();
    stream::iter(0..args.objects)
        .map(|number| {
            // Different bytes keep a store from storing one only once; they compress no worse.
            let mut body = vec![number as u8; args.bytes];
            body[..8.min(args.bytes)].copy_from_slice(&number.to_le_bytes()[..8.min(args.bytes)]);
            let (store, body) = (&store, Bytes::from(body));
            async move { store.create(&format!("put/{number:08}"), body).await.map(drop) }
        })
        .buffer_unordered(args.jobs)
        .try_collect::<()>()
        .await?;
    let seconds = begun.elapsed().as_secs_f64();
    let bytes = args.objects * args.bytes as u64;
    print_json(&serde_json::json!({
        "objects": args.objects,
        "bytes": bytes,
        "seconds": seconds,
        "bytes_per_second": (bytes as f64 / seconds) as u64,
    }))?;
    Ok(Outcome::Good)
}
