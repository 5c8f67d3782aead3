// One process of another system: it appends, reads or checks, as `src/java/mod.rs` tells it.
//
// Standard output and input are the line to the bench: "ready", then a line with the moment of the
// first record, then "done". Whatever is wrong is an exception, whose text the bench reports.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.TimeUnit;

import io.aeron.Aeron;
import io.aeron.FragmentAssembler;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.bytes.BytesStore;
import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueueBuilder;
import net.openhft.chronicle.threads.Pauser;
import net.openhft.chronicle.wire.DocumentContext;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

public final class Peers {
    /** Records of the warm-up of each writer: so many laps, so many records or bytes in each. */
    static final int LAPS = 30, LAP_RECORDS = 2_500, LAP_BYTES = 2 << 20;
    /** In the second half of the laps, a record of each writer is due so often. */
    static final long LAP_RATE = 50_000;
    /** After each lap all processes leave the processors to the compilers. */
    static final long PAUSE_MS = 40;
    static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(20);

    public static void main(String[] args) throws Exception {
        Job job = new Job(args);
        if (job.role.equals("drive")) {
            drive(job);
            System.exit(0);
        }
        try (Way way = job.way()) {
            switch (job.role) {
                case "write" -> write(job, way);
                case "read" -> read(job, way);
                default -> check(job, way);
            }
        }
        // Not by returning: libraries have threads that would not end.
        System.exit(0);
    }

    /** The media driver of Aeron, until the bench ends. */
    static void drive(Job job) throws Exception {
        MediaDriver.Context context = new MediaDriver.Context()
                .aeronDirectoryName(AeronIpc.directory(job))
                .threadingMode(ThreadingMode.SHARED)
                .dirDeleteOnStart(true)
                .dirDeleteOnShutdown(true);
        try (MediaDriver driver = MediaDriver.launch(context)) {
            waitForTheEnd();
        }
    }

    static void waitForTheEnd() throws Exception {
        System.out.println("ready");
        System.out.flush();
        System.in.read();
    }

    static void write(Job job, Way way) throws Exception {
        try (Writer warm = way.writer("warm")) {
            Records records = new Records(job, job.index);
            ByteBuffer samples = samples(job.lapRecords);
            for (int lap = 0; lap < LAPS; lap++) {
                long rate = lap < LAPS / 2 ? 0 : LAP_RATE * job.writers;
                run(warm, records, job.lapRecords, System.nanoTime(), rate, job, samples.clear());
                Thread.sleep(PAUSE_MS);
            }
        }
        try (Writer writer = way.writer("log")) {
            Records records = new Records(job, job.index);
            ByteBuffer samples = samples(job.rate > 0 ? job.records : 1);
            long start = ready();
            run(writer, records, job.records, start, job.rate, job, samples);
            done(job, samples);
        }
    }

    /** Appends by the schedule, or as fast as it goes without a rate. */
    static void run(
            Writer writer, Records records, int count, long start, long rate, Job job,
            ByteBuffer samples) {
        for (int sequence = 0; sequence < count; sequence++) {
            ByteBuffer record = records.next();
            if (rate == 0) {
                writer.append(record, records.turn);
                continue;
            }
            long due = start + dueNs(job, job.index, sequence, rate);
            waitUntil(due, job.spins);
            writer.append(record, records.turn);
            samples.putLong(System.nanoTime() - due);
        }
    }

    static long dueNs(Job job, int writer, long sequence, long rate) {
        return (sequence * job.writers + writer) * 1_000_000_000L / rate;
    }

    static void waitUntil(long due, boolean spins) {
        for (long left; (left = due - System.nanoTime()) > 0; ) {
            if (spins) Thread.onSpinWait();
            else java.util.concurrent.locks.LockSupport.parkNanos(left);
        }
    }

    static void read(Job job, Way way) throws Exception {
        try (Reader warm = way.reader("warm")) {
            Ledger ledger = new Ledger(job, samples(job.lapRecords * job.writers));
            for (int lap = 0; lap < LAPS; lap++) {
                ledger.begin(0, 0, job.lapRecords * job.writers);
                follow(warm, ledger, job);
                Thread.sleep(PAUSE_MS / 2);
            }
        }
        try (Reader reader = way.reader("log")) {
            ByteBuffer samples = samples(job.records * job.writers);
            Ledger ledger = new Ledger(job, samples);
            long start = ready();
            ledger.begin(start, job.rate, job.records * job.writers);
            follow(reader, ledger, job);
            done(job, samples);
        }
    }

    /** Reads until the ledger has all; sleeps as the library does, where it shall. */
    static void follow(Reader reader, Ledger ledger, Job job) {
        long last = System.nanoTime();
        while (ledger.left > 0) {
            boolean has = reader.poll(ledger);
            if (has) {
                last = ledger.now;
                if (!job.readerSpins) reader.reset();
            } else if (job.readerSpins) {
                Thread.onSpinWait();
            } else {
                reader.idle();
            }
            if (!has && System.nanoTime() - last > PATIENCE_NS)
                throw new IllegalStateException(ledger.left + " records are missing");
        }
    }

    /** Reads everything that was appended, without a clock. */
    static void check(Job job, Way way) throws Exception {
        try (Reader reader = way.reader("log")) {
            ready();
            Ledger ledger = new Ledger(job, samples(1));
            ledger.begin(0, 0, job.records * job.writers);
            follow(reader, ledger, job);
            if (reader.poll(ledger)) throw new IllegalStateException("there are too many records");
            done(job, samples(0));
        }
    }

    static ByteBuffer samples(int count) {
        ByteBuffer samples = ByteBuffer.allocateDirect(Math.max(count, 1) * 8);
        return samples.order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Reports that this process is ready; returns when the first record is due. */
    static long ready() throws Exception {
        System.gc();
        System.out.println("ready");
        System.out.flush();
        String line = new BufferedReader(new InputStreamReader(System.in)).readLine();
        if (line == null) throw new IllegalStateException("the bench has ended");
        return Long.parseLong(line);
    }

    static void done(Job job, ByteBuffer samples) throws Exception {
        System.out.println("done");
        System.out.flush();
        try (FileChannel file = FileChannel.open(Path.of(job.samples),
                StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            for (samples.flip(); samples.hasRemaining(); ) file.write(samples);
        }
        System.out.println("written");
        System.out.flush();
    }
}

/** What this process is to do. */
final class Job {
    final String way, role, dir, samples, templates;
    final int index, writers, records, bytes, turns, lapRecords;
    final long rate;
    final boolean spins, readerSpins;

    Job(String[] args) {
        way = args[0];
        role = args[1];
        dir = args[2];
        samples = args[3];
        templates = args[4];
        index = Integer.parseInt(args[5]);
        writers = Integer.parseInt(args[6]);
        records = Integer.parseInt(args[7]);
        bytes = Integer.parseInt(args[8]);
        turns = Integer.parseInt(args[9]);
        rate = Long.parseLong(args[10]);
        lapRecords = Math.min(Peers.LAP_RECORDS, Peers.LAP_BYTES / bytes + 1);
        spins = args[11].equals("spin");
        readerSpins = args[12].equals("spin");
    }

    Way way() {
        return way.startsWith("chronicle") ? new Chronicle(this) : new AeronIpc(this);
    }
}

interface Way extends AutoCloseable {
    Writer writer(String name);

    Reader reader(String name);

    void close();
}

interface Writer extends AutoCloseable {
    /** `turn` is which template the record is. */
    void append(ByteBuffer record, int turn);

    void close();
}

interface Reader extends AutoCloseable {
    /** Shows the ledger the next records; whether there were any. */
    boolean poll(Ledger ledger);

    void idle();

    void reset();

    void close();
}

/** The records of one writer, as `record.rs` makes them. */
final class Records {
    static final int STAMPED_BYTES_MIN = 16, LOW_DIGITS_AT = 7;
    final ByteBuffer[] templates;
    final boolean stamped;
    /** Which template the last record was. */
    int turn;
    long lowDigits = 0x3030303030303030L;

    Records(Job job, int writer) throws java.io.IOException {
        templates = new ByteBuffer[job.turns];
        turn = job.turns - 1;
        stamped = job.bytes >= STAMPED_BYTES_MIN;
        try (FileChannel file = FileChannel.open(Path.of(job.templates))) {
            for (int turn = 0; turn < job.turns; turn++) {
                ByteBuffer template = ByteBuffer.allocateDirect(job.bytes);
                templates[turn] = template.order(ByteOrder.LITTLE_ENDIAN);
                file.read(templates[turn], ((long) writer * job.turns + turn) * job.bytes);
                templates[turn].clear();
            }
        }
    }

    ByteBuffer next() {
        turn = turn + 1 == templates.length ? 0 : turn + 1;
        ByteBuffer record = templates[turn];
        if (stamped) {
            if ((lowDigits & 0xff) > '9') carry();
            record.putLong(LOW_DIGITS_AT, Long.reverseBytes(lowDigits++));
        }
        return record;
    }

    private void carry() {
        for (int shift = 0; shift < 56 && (lowDigits >> shift & 0xff) > '9'; shift += 8)
            lowDigits += (1L << shift + 8) - (10L << shift);
    }
}

/** Checks what is read, and notes when. */
final class Ledger {
    final Job job;
    final Records[] expected;
    final ByteBuffer samples;
    long start, rate, now;
    int left;
    final long[] sequences;

    Ledger(Job job, ByteBuffer samples) throws java.io.IOException {
        this.job = job;
        this.samples = samples;
        expected = new Records[job.writers];
        for (int writer = 0; writer < job.writers; writer++)
            expected[writer] = new Records(job, writer);
        sequences = new long[job.writers];
    }

    void begin(long start, long rate, int records) {
        this.start = start;
        this.rate = rate;
        left = records;
        samples.clear();
    }

    /** Of the record that was just found; before it is checked. */
    void seen() {
        now = System.nanoTime();
        left--;
    }

    /** Whose record begins with these bytes, little-endian. */
    int writerOf(long head) {
        int writer = 0;
        if (job.bytes < Records.STAMPED_BYTES_MIN) {
            writer = (int) (head & 0xff) - '!';
        } else {
            for (int at = 0; at < 32; at += 8)
                writer = writer * 10 + (int) (head >> at & 0xff) - '0';
        }
        if (writer < 0 || writer >= expected.length) wrong();
        return writer;
    }

    /** The record that this writer appended next, to be compared. */
    ByteBuffer next(int writer) {
        long sequence = sequences[writer]++;
        if (rate > 0) samples.putLong(now - start - Peers.dueNs(job, writer, sequence, rate));
        return expected[writer].next();
    }

    static void wrong() {
        throw new IllegalStateException("a record is lost, torn, doubled or out of order");
    }
}

final class Chronicle implements Way {
    private final Job job;

    Chronicle(Job job) {
        this.job = job;
    }

    private ChronicleQueue queue(String name) {
        return SingleChronicleQueueBuilder.binary(job.dir + "/" + name).build();
    }

    public Writer writer(String name) {
        ChronicleQueue queue = queue(name);
        ExcerptAppender appender = queue.createAppender();
        BytesStore<?, ?>[] stores = new BytesStore<?, ?>[job.turns];
        return new Writer() {
            public void append(ByteBuffer record, int turn) {
                if (stores[turn] == null || stores[turn].underlyingObject() != record)
                    stores[turn] = BytesStore.wrap(record);
                try (DocumentContext context = appender.writingDocument()) {
                    context.wire().bytes().write(stores[turn], 0L, (long) job.bytes);
                }
            }

            public void close() {
                queue.close();
            }
        };
    }

    public Reader reader(String name) {
        ChronicleQueue queue = queue(name);
        ExcerptTailer tailer = queue.createTailer();
        Pauser pauser = Pauser.balancedUpToMillis(1);
        return new Reader() {
            public boolean poll(Ledger ledger) {
                try (DocumentContext context = tailer.readingDocument()) {
                    if (!context.isPresent()) return false;
                    ledger.seen();
                    Bytes<?> bytes = context.wire().bytes();
                    compare(bytes, bytes.readPosition(), ledger);
                    return true;
                }
            }

            public void idle() {
                pauser.pause();
            }

            public void reset() {
                pauser.reset();
            }

            public void close() {
                queue.close();
            }
        };
    }

    private void compare(Bytes<?> bytes, long at, Ledger ledger) {
        int len = job.bytes, index = 0;
        if (bytes.readRemaining() < len) Ledger.wrong();
        int writer = ledger.writerOf(len >= 8 ? bytes.readLong(at) : bytes.readByte(at));
        ByteBuffer expected = ledger.next(writer);
        for (; index + 8 <= len; index += 8)
            if (bytes.readLong(at + index) != expected.getLong(index)) Ledger.wrong();
        for (; index < len; index++)
            if (bytes.readByte(at + index) != expected.get(index)) Ledger.wrong();
    }

    public void close() {}
}

/** Messages through the shared memory of a media driver, which runs in a process of its own. */
final class AeronIpc implements Way {
    static final String CHANNEL = "aeron:ipc?term-length=16m";
    private final Job job;
    private final Aeron aeron;

    AeronIpc(Job job) {
        this.job = job;
        aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(directory(job)));
    }

    static String directory(Job job) {
        return job.dir + "/aeron";
    }

    static int stream(String name) {
        return name.equals("warm") ? 1001 : 1002;
    }

    public Writer writer(String name) {
        Publication publication = aeron.addPublication(CHANNEL, stream(name));
        UnsafeBuffer[] buffers = new UnsafeBuffer[job.turns];
        while (!publication.isConnected()) Thread.onSpinWait();
        return new Writer() {
            public void append(ByteBuffer record, int turn) {
                if (buffers[turn] == null || buffers[turn].byteBuffer() != record)
                    buffers[turn] = new UnsafeBuffer(record);
                while (publication.offer(buffers[turn], 0, job.bytes) < 0) Thread.onSpinWait();
            }

            public void close() {
                publication.close();
            }
        };
    }

    public Reader reader(String name) {
        Subscription subscription = aeron.addSubscription(CHANNEL, stream(name));
        IdleStrategy idle = new BackoffIdleStrategy();
        return new Reader() {
            private Ledger ledger;
            private final FragmentAssembler assembler =
                    new FragmentAssembler((buffer, offset, length, header) -> {
                        ledger.seen();
                        if (length != job.bytes) Ledger.wrong();
                        compare(buffer, offset, ledger);
                    });

            public boolean poll(Ledger ledger) {
                this.ledger = ledger;
                return subscription.poll(assembler, Math.min(ledger.left, 10)) > 0;
            }

            public void idle() {
                idle.idle();
            }

            public void reset() {
                idle.reset();
            }

            public void close() {
                subscription.close();
            }
        };
    }

    private void compare(org.agrona.DirectBuffer buffer, int at, Ledger ledger) {
        int len = job.bytes, index = 0;
        int writer = ledger.writerOf(len >= 8 ? buffer.getLong(at) : buffer.getByte(at));
        ByteBuffer expected = ledger.next(writer);
        for (; index + 8 <= len; index += 8)
            if (buffer.getLong(at + index) != expected.getLong(index)) Ledger.wrong();
        for (; index < len; index++)
            if (buffer.getByte(at + index) != expected.get(index)) Ledger.wrong();
    }

    public void close() {
        aeron.close();
    }
}
