//! Finding the logs below a URL.

use super::ReadError;
use super::retry::patiently;
use crate::object::LOG;
use crate::store::Store;

/// Folders in folders in which logs are looked for.
const DEPTH_MAX: usize = 6;
/// More folders are not looked at: this is not a prefix for logs.
const FOLDERS_MAX: usize = 10_000;

/// The prefixes, below the store's own, of all logs there, in order; an empty one is the store's
/// own. One small request and one list for each folder.
pub async fn find_logs(store: &dyn Store) -> Result<Vec<String>, ReadError> {
    // First a list: S3 refuses to say whether an object is there without a word why.
    patiently("", || store.folders("")).await?;
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    let mut looked = 0;
    while let Some(folder) = folders.pop() {
        looked += 1;
        if looked > FOLDERS_MAX {
            let text =
                format!("more than {FOLDERS_MAX} folders are below this URL; give one deeper");
            return Err(ReadError::Position(text));
        }
        let key = join(&folder, LOG);
        if patiently(&key, || store.head(&key)).await?.is_some() {
            found.push(folder);
        } else if folder.split('/').count() < DEPTH_MAX {
            let inner = patiently(&folder, || store.folders(&folder)).await?;
            folders.extend(inner.iter().map(|name| join(&folder, name)));
        }
    }
    found.sort();
    Ok(found)
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") }
}
