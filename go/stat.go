package vellum

// #include "bridge.h"
import "C"

import "time"

// Stat is the state of a log at one moment. Counters count since the control file was made.
type Stat struct {
	// Begin is the oldest position still kept, Durable the end of the records that survive a power
	// cut, Published the end of those that readers can see, Tail the end of the reserved space,
	// PreparedEnd the end of the last file, Checkpoint the position that was stored, or 0.
	Begin, Durable, Published, Tail, PreparedEnd, Checkpoint LSN
	// SegmentBytes is how many bytes of log a file holds.
	SegmentBytes uint64
	// Records were appended, and take RecordBytes of log with headers and padding.
	Records, RecordBytes uint64
	// Repairs is how many reservations of dead processes were padded, with RepairedBytes.
	Repairs, RepairedBytes uint64
	// Dropped is how many records were dropped on a full disk.
	Dropped uint64
	// StagedBytes wait in the stage until they are committed.
	StagedBytes uint64
	// Text is whether the log is plain text.
	Text bool
	// Fill is how records are written, and FillReason why.
	Fill       Fill
	FillReason string
	// Preallocate is a vellum_preallocate of vellum.h, and PreallocateReason says why.
	Preallocate       int
	PreallocateReason string
	// Filesystem is the filesystem that the log is on.
	Filesystem string
	// Advice is the file that advised what the program left open, or "".
	Advice string
	// Stage is where records lie in memory until they are committed, or "".
	Stage string
	// Poison is why nothing more can be made durable, or "".
	Poison string
	// CursorsFault is why the cursors cannot be read, or "". Then no file is removed.
	CursorsFault string
	// ID is the log's id as 32 hexadecimal digits, and Epoch grows whenever positions may be given
	// out again.
	ID    string
	Epoch uint64
	// ApplicationTag is the tag with which the log was created, or 0.
	ApplicationTag uint64
	// LostFrom and LostEnd are the positions between which `vellum repair` or a restore left out
	// records of a framed log, or 0; others between them were saved.
	LostFrom, LostEnd LSN
	// Envelope is whether each record has a time and its writer.
	Envelope bool
	// Recovery is the outcome of the newest recovery, by any process, or nil.
	Recovery *Recovery
	// Commits has the counts of commits.
	Commits CommitStat
	// Policy is when a text log continues in a new file, and how much is kept.
	Policy Policy
	// Removed is the files that the policy has removed.
	Removed Removed
	// Ship is how shipping goes.
	Ship Ship

	// Segments are the files, oldest first, spares last.
	Segments []Segment
	// Participants are the processes that are attached, or died while they were.
	Participants []Participant
	// Holds is the holds, with their holders.
	Holds []Hold
	// Gaps are stretches of a text log that are missing.
	Gaps []Gap
	// Cursors are the named cursors, in the order of their names.
	Cursors []CursorStat
}

// CommitStat has the counts of commits.
type CommitStat struct {
	// Commits is how many records, or moments, callers wanted durable; Syncs is how many writes or
	// syncs of the device that took, and SyncedBytes how many bytes of log.
	Commits, Syncs, SyncedBytes uint64
	// SyncTime is how long the syncs took together. Entry i of SyncMicroseconds counts those of
	// less than 2^i microseconds that are not in an earlier one; the last counts all longer ones.
	SyncTime         time.Duration
	SyncMicroseconds [24]uint64
}

// Policy says when a text log continues in a new file, and how much is kept. 0 is never, or no
// limit.
type Policy struct {
	RotateBytes               uint64
	RotateEvery, RotateOffset time.Duration
	RetainBytes               uint64
	RetainAge                 time.Duration
	// RetainFiles is negative where all files are kept.
	RetainFiles int
	Compress    Compression
}

// Removed counts the files that the policy has removed, and the bytes of text in them, by the rule.
// Files left over could not be removed.
type Removed struct {
	FilesByBytes, BytesByBytes   uint64
	FilesByAge, BytesByAge       uint64
	FilesByFiles, BytesByFiles   uint64
	FilesLeftOver, BytesLeftOver uint64
}

// Ship is how shipping goes. Status and Fault are numbers of vellum.h: a vellum_ship_status, and
// the last fault.
type Ship struct {
	Status, Fault, FaultCode, PID int
	Generation                    uint64
	// Shipped is the end of the shipped records, reported at ShippedAt; zero where no shipper has
	// reported it.
	Shipped   LSN
	ShippedAt time.Time
	LagBytes  uint64
	// HeldFrom is from where on the log keeps records for the shipper.
	HeldFrom LSN
	// GapFrom and GapTo are the newest stretch that was removed before it was shipped.
	GapFrom, GapTo                           LSN
	Puts, Gets, LogBytes, SentBytes, Retries uint64
}

// Segment is a file of a log.
type Segment struct {
	Path string
	// First is the first position that it can hold, and End the end of the reserved space in it; 0 for
	// a spare.
	First, End LSN
	// FileBytes is the length of the file, AllocatedBytes what its blocks take.
	FileBytes, AllocatedBytes uint64
	State                     SegmentState
}

// SegmentState is where a file is in its life.
type SegmentState int

// The states of a segment.
const (
	// SegmentSealed is full: no more records, ever.
	SegmentSealed SegmentState = C.VELLUM_SEGMENT_SEALED
	// SegmentActive is the one that records go to.
	SegmentActive SegmentState = C.VELLUM_SEGMENT_ACTIVE
	// SegmentPrepared is made ready ahead of need.
	SegmentPrepared SegmentState = C.VELLUM_SEGMENT_PREPARED
	// SegmentSpare is trimmed, and kept to be used again.
	SegmentSpare SegmentState = C.VELLUM_SEGMENT_SPARE
)

// Participant is a process that is attached, or died while it was.
type Participant struct {
	// Index is its place, PID its process number in its own PID namespace.
	Index, PID     int
	Alive, Stopped bool
	// InFlight is how many reservations it has not published, with InFlightBytes, the oldest at
	// InFlightLSN.
	InFlight, InFlightBytes uint64
	InFlightLSN             LSN
}

// Hold is something that others may wait for, and its holder.
type Hold struct {
	// The kinds of vellum.h: a vellum_hold_kind in What, and a vellum_process_state in State.
	What, State int
	// PID is the process, or 0 where it cannot be told. In another PID namespace it is a number of
	// that one.
	PID            int
	OtherNamespace bool
	// First is where the batch or the reservation begins, with Bytes; otherwise 0.
	First LSN
	Bytes uint64
	// Waited is for how long others have waited.
	Waited time.Duration
	// Text is all of this as a sentence without its end.
	Text string
}

// CursorStat is the state of a named cursor.
type CursorStat struct {
	Name string
	LSN  LSN
	// LagBytes and LagRecords are how much there is from the cursor to the published end;
	// LagRecords is the largest number where counting takes too long. Lag is how old the oldest
	// record is that is not finished, at most; negative where nothing tells.
	LagBytes, LagRecords uint64
	Lag                  time.Duration
	// Committed is when the cursor was committed or set last.
	Committed time.Time
	// Holds is whether it keeps records from being removed: MaxHeldBytes and MaxHeldAge of them at
	// most, 0 is no limit.
	Holds        bool
	MaxHeldBytes uint64
	MaxHeldAge   time.Duration
	// Owned is whether a process owns it, Owner that process, or 0 where it cannot be seen.
	Owned bool
	Owner int
	// MissingBytes were removed in front of it, and its reader has not been told. Its reader has
	// gone on behind such bytes Overruns times, behind OverrunBytes, for the last time at
	// OverrunAt.
	MissingBytes, Overruns, OverrunBytes uint64
	OverrunAt                            time.Time
}

// Stat looks at the state of the log, its files and its processes. It changes nothing.
//
// Errors: [ErrNotFound] where the directory has gone; [ErrIO] where it cannot be read. Cost: a system
// call for each file and each process.
func (l *Log) Stat() (*Stat, error) {
	if err := l.users.enter(); err != nil {
		return nil, err
	}
	defer l.users.leave()
	var c *C.vellum_stat
	if err := failure(C.vg_stat_take(l.c, &c)); err != nil {
		return nil, err
	}
	defer C.vellum_stat_free(c)
	stat := new(Stat)
	stat.summary(c)
	stat.counters(c)
	stat.shipping(c)
	stat.files(c)
	stat.processes(c)
	stat.readers(c)
	return stat, nil
}

func (s *Stat) summary(from *C.vellum_stat) {
	c := C.vellum_summary{struct_size: C.sizeof_vellum_summary}
	C.vellum_stat_summary(from, &c)
	s.Begin, s.Durable, s.Published = LSN(c.begin), LSN(c.durable), LSN(c.published)
	s.Tail, s.PreparedEnd, s.Checkpoint = LSN(c.tail), LSN(c.prepared_end), LSN(c.checkpoint)
	s.SegmentBytes = uint64(c.segment_capacity_bytes)
	s.Records, s.RecordBytes = uint64(c.records), uint64(c.record_bytes)
	s.Repairs, s.RepairedBytes = uint64(c.repairs), uint64(c.repaired_bytes)
	s.Dropped, s.StagedBytes = uint64(c.dropped), uint64(c.staged_bytes)
	s.Text, s.Envelope = c.layout == C.VELLUM_LAYOUT_TEXT, c.has_envelope != 0
	s.Fill, s.FillReason = Fill(c.fill), textOf(c.fill_reason)
	s.Preallocate, s.PreallocateReason = int(c.preallocate), textOf(c.preallocate_reason)
	s.Filesystem, s.Advice, s.Stage = textOf(c.filesystem), textOf(c.advice), textOf(c.stage)
	s.Poison, s.CursorsFault = textOf(c.poison), textOf(c.cursors_fault)
	s.LostFrom, s.LostEnd = LSN(c.lost_from), LSN(c.lost_end)
	s.ID, s.Epoch, s.ApplicationTag = textOf(c.log_id), uint64(c.epoch), uint64(c.application_tag)
}

func (s *Stat) counters(from *C.vellum_stat) {
	recovery := C.vellum_recovery{struct_size: C.sizeof_vellum_recovery}
	C.vellum_stat_recovery(from, &recovery)
	s.Recovery = recoveryOf(&recovery)
	commits := C.vellum_commits{struct_size: C.sizeof_vellum_commits}
	C.vellum_stat_commits(from, &commits)
	s.Commits = CommitStat{
		Commits: uint64(commits.commits), Syncs: uint64(commits.syncs),
		SyncedBytes: uint64(commits.synced_bytes),
		SyncTime:    time.Duration(commits.sync_us_sum) * time.Microsecond,
	}
	for i, count := range commits.sync_us {
		s.Commits.SyncMicroseconds[i] = uint64(count)
	}
	policy := C.vellum_policy{struct_size: C.sizeof_vellum_policy}
	C.vellum_stat_policy(from, &policy)
	s.Policy = Policy{
		RotateBytes: uint64(policy.rotate_bytes),
		RotateEvery: secondsOf(policy.rotate_every_s), RotateOffset: secondsOf(policy.rotate_offset_s),
		RetainBytes: uint64(policy.retain_bytes), RetainAge: secondsOf(policy.retain_age_s),
		RetainFiles: int(policy.retain_files), Compress: Compression(policy.compress),
	}
	removed := C.vellum_removed{struct_size: C.sizeof_vellum_removed}
	C.vellum_stat_removed(from, &removed)
	s.Removed = Removed{
		uint64(removed.files_by_bytes), uint64(removed.bytes_by_bytes),
		uint64(removed.files_by_age), uint64(removed.bytes_by_age),
		uint64(removed.files_by_files), uint64(removed.bytes_by_files),
		uint64(removed.files_left_over), uint64(removed.bytes_left_over),
	}
}

func (s *Stat) shipping(from *C.vellum_stat) {
	c := C.vellum_ship{struct_size: C.sizeof_vellum_ship}
	C.vellum_stat_ship(from, &c)
	s.Ship = Ship{
		Status: int(c.status), Fault: int(c.fault), FaultCode: int(c.fault_code), PID: int(c.pid),
		Generation: uint64(c.generation), Shipped: LSN(c.shipped), ShippedAt: timeOf(c.shipped_at_s),
		LagBytes: uint64(c.lag_bytes), HeldFrom: LSN(c.held_from),
		GapFrom: LSN(c.gap_from), GapTo: LSN(c.gap_to), Puts: uint64(c.puts), Gets: uint64(c.gets),
		LogBytes: uint64(c.log_bytes), SentBytes: uint64(c.sent_bytes), Retries: uint64(c.retries),
	}
}

func (s *Stat) files(from *C.vellum_stat) {
	segment := C.vellum_segment{struct_size: C.sizeof_vellum_segment}
	for i := C.size_t(0); C.vellum_stat_segment(from, i, &segment) == C.VELLUM_OK; i++ {
		s.Segments = append(s.Segments, Segment{
			Path: textOf(segment.path), First: LSN(segment.first_lsn), End: LSN(segment.end_lsn),
			FileBytes: uint64(segment.file_bytes), AllocatedBytes: uint64(segment.allocated_bytes),
			State: SegmentState(segment.state),
		})
	}
	gap := C.vellum_gap{struct_size: C.sizeof_vellum_gap}
	for i := C.size_t(0); C.vellum_stat_gap(from, i, &gap) == C.VELLUM_OK; i++ {
		s.Gaps = append(s.Gaps, gapOf(&gap))
	}
}

func (s *Stat) processes(from *C.vellum_stat) {
	participant := C.vellum_participant{struct_size: C.sizeof_vellum_participant}
	for i := C.size_t(0); C.vellum_stat_participant(from, i, &participant) == C.VELLUM_OK; i++ {
		s.Participants = append(s.Participants, Participant{
			Index: int(participant.index), PID: int(participant.pid),
			Alive: participant.alive != 0, Stopped: participant.stopped != 0,
			InFlight:      uint64(participant.in_flight_count),
			InFlightBytes: uint64(participant.in_flight_bytes),
			InFlightLSN:   LSN(participant.in_flight_lsn),
		})
	}
	hold := C.vellum_hold{struct_size: C.sizeof_vellum_hold}
	for i := C.size_t(0); C.vellum_stat_hold(from, i, &hold) == C.VELLUM_OK; i++ {
		s.Holds = append(s.Holds, Hold{
			What: int(hold.what), State: int(hold.state), PID: int(hold.pid),
			OtherNamespace: hold.other_namespace != 0,
			First:          LSN(hold.first_lsn), Bytes: uint64(hold.bytes),
			Waited: time.Duration(hold.waited_us) * time.Microsecond, Text: textOf(hold.text),
		})
	}
}

func (s *Stat) readers(from *C.vellum_stat) {
	c := C.vellum_cursor_stat{struct_size: C.sizeof_vellum_cursor_stat}
	for i := C.size_t(0); C.vellum_stat_cursor(from, i, &c) == C.VELLUM_OK; i++ {
		s.Cursors = append(s.Cursors, CursorStat{
			Name: textOf(c.name), LSN: LSN(c.lsn),
			LagBytes: uint64(c.lag_bytes), LagRecords: uint64(c.lag_records), Lag: secondsOf(c.lag_s),
			Committed: timeOf(c.committed_at_s), Holds: c.holds != 0,
			MaxHeldBytes: uint64(c.max_held_bytes), MaxHeldAge: secondsOf(c.max_held_age_s),
			Owned: c.owned != 0, Owner: int(c.owner), MissingBytes: uint64(c.missing_bytes),
			Overruns: uint64(c.overruns), OverrunBytes: uint64(c.overrun_bytes),
			OverrunAt: timeOf(c.overrun_at_s),
		})
	}
}

// secondsOf is a duration; -1 ns where nothing tells.
func secondsOf(seconds C.uint64_t) time.Duration {
	if seconds > 1<<33 {
		return -1
	}
	return time.Duration(seconds) * time.Second
}
