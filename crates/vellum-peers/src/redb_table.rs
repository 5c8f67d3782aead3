//! redb: an insert for each record, a transaction of its own.

use std::path::Path;

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};
use vellum_bench::commit::Cell;

use crate::adapter::{Engine, Failure};

const FILE_NAME: &str = "database";
/// Writer and sequence lead to the record.
const TABLE: TableDefinition<'_, (u32, u64), &[u8]> = TableDefinition::new("log");

#[derive(Clone, Copy)]
pub(crate) struct Redb;

impl Engine for Redb {
    type Log = Database;

    fn name(self) -> &'static str {
        "redb"
    }

    fn open(self, dir: &Path, _cell: &Cell) -> Result<Database, Failure> {
        let database = Database::create(dir.join(FILE_NAME))?;
        let transaction = database.begin_write()?;
        transaction.open_table(TABLE)?;
        transaction.commit()?;
        Ok(database)
    }

    fn commit(log: &Database, writer: u32, sequence: u64, record: &[u8]) -> Result<(), Failure> {
        let mut transaction = log.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        transaction.open_table(TABLE)?.insert((writer, sequence), record)?;
        transaction.commit()?;
        Ok(())
    }

    fn read_back(self, dir: &Path, _: &Cell, visit: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
        let database = Database::open(dir.join(FILE_NAME))?;
        let transaction = database.begin_read()?;
        for row in transaction.open_table(TABLE)?.iter()? {
            visit(row?.1.value());
        }
        Ok(())
    }
}
