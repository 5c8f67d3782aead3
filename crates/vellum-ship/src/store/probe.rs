//! Whether a store keeps the one promise that everything rests on: of several that create an
//! object, one wins. Some stores ignore the condition, some check and then write; both would lose
//! data.

use bytes::Bytes;
use futures_util::future::join_all;

use super::{PutOutcome, Store, StoreError, StoreErrorKind};

/// Writers in a race.
const WRITERS: usize = 8;
/// Races, because a store that checks and then writes loses only some.
const RACES: usize = 4;
/// Tries of a request that may succeed later.
const TRIES: usize = 4;

/// The abilities of a store beyond its promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Whether these credentials may delete. If not, the objects of the probe stay.
    pub deletes: bool,
}

/// Tries whether one creator wins, below `probe/`, with some forty small objects' requests. Fails
/// by name if the store may let two win.
pub async fn probe(store: &dyn Store) -> Result<Probe, StoreError> {
    let nonce = nonce()?;
    twice(store, &format!("probe/{nonce}-twice")).await?;
    for number in 0..RACES {
        race(store, &format!("probe/{nonce}-race{number}")).await?;
    }
    let deletes = again(store, &format!("probe/{nonce}-twice")).await?;
    if deletes {
        for number in 0..RACES {
            patient(|| async { store.delete(&format!("probe/{nonce}-race{number}")).await })
                .await?;
        }
    }
    Ok(Probe { deletes })
}

/// Creates an object, and then another one at its key.
async fn twice(store: &dyn Store, key: &str) -> Result<(), StoreError> {
    let first = Bytes::from(format!("{key} first"));
    ensure_created(store, key, &first).await?;
    let second = Bytes::from(format!("{key} second"));
    let outcome = patient(|| store.create(key, second.clone())).await?;
    if outcome == PutOutcome::Created || !holds(store, key, &first).await? {
        return Err(refused("it replaced an object that was to be created only if absent"));
    }
    Ok(())
}

/// Creates the object, whatever became of earlier requests for it.
async fn ensure_created(store: &dyn Store, key: &str, body: &Bytes) -> Result<(), StoreError> {
    for _ in 0..TRIES {
        patient(|| store.create(key, body.clone())).await?;
        if holds(store, key, body).await? {
            return Ok(());
        }
    }
    Err(refused("an object that was created is not there, or is another one"))
}

/// Whether the object is this one. Asked again if it is not: a read may be cut short.
async fn holds(store: &dyn Store, key: &str, body: &Bytes) -> Result<bool, StoreError> {
    for _ in 0..TRIES {
        if patient(|| store.get(key)).await?.as_ref() == Some(body) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Lets many create at the same key at the same time.
async fn race(store: &dyn Store, key: &str) -> Result<(), StoreError> {
    let body = |writer: usize| Bytes::from(format!("{key} writer {writer} {}", "x".repeat(4096)));
    let outcomes = join_all((0..WRITERS).map(|writer| store.create(key, body(writer)))).await;
    let winners: Vec<usize> = (0..WRITERS)
        .filter(|writer| matches!(outcomes[*writer], Ok(PutOutcome::Created)))
        .collect();
    match winners[..] {
        // All answers were lost, or errors: nothing was learnt, and nothing is wrong.
        [] => Ok(()),
        [winner] if holds(store, key, &body(winner)).await? => Ok(()),
        [_] => Err(refused("one writer won a race, and the object of another is there")),
        _ => {
            let text = format!("{} of {WRITERS} writers created the same object", winners.len());
            Err(refused(&text))
        }
    }
}

/// Whether the object can be deleted; if so, its key has to be free afterwards (a store of versions
/// may keep it taken, and then hide what is created there).
async fn again(store: &dyn Store, key: &str) -> Result<bool, StoreError> {
    match patient(|| store.delete(key)).await {
        Err(error) if error.kind() == StoreErrorKind::Denied => return Ok(false),
        deleted => deleted?,
    }
    ensure_created(store, key, &Bytes::from(format!("{key} again"))).await?;
    patient(|| store.delete(key)).await?;
    Ok(true)
}

/// Repeats a request that may succeed later, at once: a store that recovers slowly is not used
/// first.
async fn patient<T, F>(mut request: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut tries = 1;
    loop {
        match request().await {
            Err(error) if error.is_transient() && tries < TRIES => tries += 1,
            done => return done,
        }
    }
}

fn refused(why: &str) -> StoreError {
    let text = format!(
        "this store cannot be used: {why}; two machines could both think that their log is the one"
    );
    StoreError::new(StoreErrorKind::Other, text)
}

/// Sixteen digits that no other probe has.
fn nonce() -> Result<String, StoreError> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| StoreError::new(StoreErrorKind::Other, error.to_string()))?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}
