//! Deleting old generations.

use std::sync::Arc;
use std::time::Duration;

use super::ShipError;
use super::requests::now;
use crate::decide::{Keep, Point, deletable};
use crate::object::{self, Hash, Header, Key, Kind, Link};
use crate::read::Remote;
use crate::store::Store;

/// What was deleted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trimmed {
    /// Objects.
    pub objects: u64,
    /// Generations of which nothing is left but seal and marker.
    pub generations: u32,
}

/// Deletes the generations that ended longer than `retain` ago. The generation that is shipped to
/// is never touched. What is left can be restored at any moment in between, and after a death.
///
/// # Errors
///
/// What the store returns. What was deleted by then stays deleted; the next call continues.
pub async fn trim(
    store: Arc<dyn Store>,
    retain: Duration,
    is_dry: bool,
) -> Result<Trimmed, ShipError> {
    let remote = Remote::open(Arc::clone(&store)).await?;
    let plan = remote.plan().await?;
    let retain = u64::try_from(retain.as_nanos()).unwrap_or(u64::MAX);
    let until = now().saturating_sub(retain);
    let mut trimmed = Trimmed::default();
    for seal in plan.seals.iter().take_while(|seal| seal.time <= until) {
        let deleted = trim_generation(store.as_ref(), seal, is_dry).await?;
        trimmed.objects += deleted;
        trimmed.generations += u32::from(deleted > 0);
    }
    Ok(trimmed)
}

async fn trim_generation(store: &dyn Store, seal: &Header, is_dry: bool) -> Result<u64, ShipError> {
    let end = Point { lsn: seal.start, chain: seal.before };
    let listed = store.list(&format!("g{:08x}/", seal.generation), None).await?;
    let names: Vec<Key> = listed.iter().filter_map(|meta| object::parse(&meta.key)).collect();
    let old = deletable(seal.generation, end, &names, Keep::Nothing);
    if is_dry || old.is_empty() {
        return Ok(old.len() as u64);
    }
    close(store, seal).await?;
    for key in &old {
        store.delete(&key.to_string()).await?;
    }
    Ok(old.len() as u64)
}

/// The marker, before anything is deleted.
async fn close(store: &dyn Store, seal: &Header) -> Result<(), ShipError> {
    let link = Link { start: seal.start, end: seal.start, file: None, content: Hash::default() };
    let draft = Header::draft(Kind::Closed, seal.generation, seal.before, link);
    let marker = object::closed(Header { log_id: seal.log_id, time: now(), ..draft });
    store.create(&object::closed_name(seal.generation), marker.bytes).await?;
    Ok(())
}
