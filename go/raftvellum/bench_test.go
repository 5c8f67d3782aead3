package raftvellum

import (
	"testing"

	raftbench "github.com/hashicorp/raft/bench"
)

// The benchmarks that raft has for every store.
func BenchmarkFirstIndex(b *testing.B)  { raftbench.FirstIndex(b, newStore(b)) }
func BenchmarkLastIndex(b *testing.B)   { raftbench.LastIndex(b, newStore(b)) }
func BenchmarkGetLog(b *testing.B)      { raftbench.GetLog(b, newStore(b)) }
func BenchmarkStoreLog(b *testing.B)    { raftbench.StoreLog(b, newStore(b)) }
func BenchmarkStoreLogs(b *testing.B)   { raftbench.StoreLogs(b, newStore(b)) }
func BenchmarkDeleteRange(b *testing.B) { raftbench.DeleteRange(b, newStore(b)) }
func BenchmarkSet(b *testing.B)         { raftbench.Set(b, newStore(b)) }
func BenchmarkGet(b *testing.B)         { raftbench.Get(b, newStore(b)) }
func BenchmarkSetUint64(b *testing.B)   { raftbench.SetUint64(b, newStore(b)) }
func BenchmarkGetUint64(b *testing.B)   { raftbench.GetUint64(b, newStore(b)) }
