// Package vellum appends records to a log that many processes and goroutines share, at the speed of
// memory, and makes them survive a power cut by commits that all of them share.
//
//	log, err := vellum.Open("orders.wal", vellum.WAL())
//	if err != nil {
//		return err
//	}
//	defer log.Close()
//	lsn, err := log.AppendDurable(ctx, []byte("an order"))
//
// Rules for every function:
//
//   - A record's position ([LSN]) is a byte position in the log: it grows, it may skip, and is
//     never 0.
//   - [Log.Append] returns when the record survives the death of this process and of every other.
//     It survives a power cut when [Log.Commit], [Log.Sync] or [Log.AppendDurable] has returned.
//   - Errors are [*Error], with a [Code] for [errors.Is]: errors.Is(err, vellum.ErrNoSpace).
//   - A [Log], a [Cursor] and what [Log.Stat] returns may be used by any number of goroutines at
//     once. A [Reader], a [Backwards] and a [Batch] are for one goroutine at a time; only their
//     Close may be called by any.
//   - A context ends each wait. No call holds an operating-system thread while it waits for
//     another process, for space on the disk or for records: at most two threads of a log wait for
//     the device, and a few more append.
//   - Data that a function is given is read before it returns. The library keeps no Go pointer.
//   - Close may be called while other goroutines use the log. They get [ErrClosed].
//
// The page docs/go.md of the repository says how to build a program with it.
package vellum
