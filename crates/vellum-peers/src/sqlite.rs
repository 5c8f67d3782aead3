//! SQLite with a write-ahead log: an insert for each record, a transaction of its own. The threads
//! of a process share a connection; it takes one writer at a time anyway.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use rusqlite::Connection;
use vellum_bench::commit::Cell;

use crate::adapter::{Engine, Failure};

const FILE_NAME: &str = "database";
/// How long a process waits for another to finish its transaction.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy)]
pub(crate) struct Sqlite;

fn connect(dir: &Path) -> Result<Connection, Failure> {
    let connection = Connection::open(dir.join(FILE_NAME))?;
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

impl Engine for Sqlite {
    type Log = Mutex<Connection>;

    fn name(self) -> &'static str {
        "sqlite"
    }

    fn has_many_processes(self) -> bool {
        true
    }

    fn open(self, dir: &Path, _cell: &Cell) -> Result<Mutex<Connection>, Failure> {
        let connection = connect(dir)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.execute_batch(
            "create table if not exists log (number integer primary key, record blob not null)",
        )?;
        Ok(Mutex::new(connection))
    }

    fn commit(log: &Mutex<Connection>, _: u32, _: u64, record: &[u8]) -> Result<(), Failure> {
        let connection = log.lock().map_err(|_| "another thread panicked")?;
        connection.prepare_cached("insert into log (record) values (?1)")?.execute([record])?;
        Ok(())
    }

    fn read_back(self, dir: &Path, _: &Cell, visit: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
        let connection = connect(dir)?;
        let mut statement = connection.prepare("select record from log order by number")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            visit(row.get_ref(0)?.as_blob()?);
        }
        Ok(())
    }
}
