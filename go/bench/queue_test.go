package bench

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"vellum/vellumqueue"
)

// The cost of a message that survives a power cut when Put returns, with goroutines that put at the
// same time. bbolt syncs for each transaction; its Batch waits for others to join one.
func BenchmarkEnqueue(b *testing.B) {
	message := make([]byte, 256)
	for _, goroutines := range []int{1, 16, 256} {
		b.Run(fmt.Sprint("vellumqueue-", goroutines), func(b *testing.B) {
			queue, err := vellumqueue.Open(filepath.Join(b.TempDir(), "queue"))
			must(b, err)
			defer queue.Close()
			b.ReportAllocs()
			run(b, goroutines, func() { must(b, queue.Put(background, message)) })
		})
		for name, write := range map[string]func(*bbolt.DB, func(*bbolt.Tx) error) error{
			"bbolt": (*bbolt.DB).Update, "bbolt-batch": (*bbolt.DB).Batch,
		} {
			b.Run(fmt.Sprint(name, "-", goroutines), func(b *testing.B) {
				db, err := bbolt.Open(filepath.Join(b.TempDir(), "queue"), 0o666, nil)
				must(b, err)
				defer db.Close()
				must(b, db.Update(func(tx *bbolt.Tx) error {
					_, err := tx.CreateBucket([]byte("queue"))
					return err
				}))
				b.ReportAllocs()
				run(b, goroutines, func() {
					must(b, write(db, func(tx *bbolt.Tx) error {
						bucket := tx.Bucket([]byte("queue"))
						sequence, err := bucket.NextSequence()
						if err != nil {
							return err
						}
						return bucket.Put(binary.BigEndian.AppendUint64(nil, sequence), message)
					}))
				})
			})
		}
	}
}

// The cost of a message from Put to Ack, one after the other, where neither waits for the device.
func BenchmarkPutGetAck(b *testing.B) {
	queue, err := vellumqueue.Open(filepath.Join(b.TempDir(), "queue"),
		vellumqueue.PutAtOnce(), vellumqueue.AckAtOnce())
	must(b, err)
	defer queue.Close()
	message := make([]byte, 256)
	b.ReportAllocs()
	for b.Loop() {
		must(b, queue.Put(background, message))
		got, err := queue.Get(background)
		must(b, err)
		must(b, got.Ack(background))
	}
}

// The cost to get and to acknowledge a message that is stored already.
func BenchmarkDrain(b *testing.B) {
	queue, err := vellumqueue.Open(filepath.Join(b.TempDir(), "queue"),
		vellumqueue.PutAtOnce(), vellumqueue.AckAtOnce())
	must(b, err)
	defer queue.Close()
	message := make([]byte, 1024)
	for range b.N {
		must(b, queue.Put(background, message))
	}
	b.SetBytes(int64(len(message)))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		got, err := queue.Get(background)
		must(b, err)
		must(b, got.Ack(background))
	}
}
