//! An S3 server that answers wrongly, late or not at all, by a seed. It is a thread of the test, so
//! it ends with it.

use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::sync::Notify;
use vellum_testing::Numbers;

use crate::bucket::{Bucket, Stale};
use crate::server::{SECRET, USER, environment};

/// The fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// 503, and nothing was done.
    Busy,
    /// 500, and nothing was done.
    Failed,
    /// 500, and it was done.
    FailedAfter,
    /// The connection ends, and nothing was done.
    Reset,
    /// The connection ends, and it was done: the reply is lost.
    LostReply,
    /// The connection ends, and it is done when a later request comes.
    Late,
    /// 409, and nothing was done.
    Conflict,
    /// Done twice, as by a proxy that repeats it; the second answer counts.
    Twice,
    /// The body ends in the middle.
    Short,
    /// A list without the newest names.
    Stale,
    /// The answer comes late.
    Slow,
    /// This status and this code, and nothing was done.
    Refused(u16, &'static str),
}

impl Fault {
    /// Whether it can happen to this request.
    fn fits(self, request: &Whole) -> bool {
        let is_list = request.uri().query().is_some_and(|query| query.contains("list-type"));
        match self {
            Fault::Conflict | Fault::Late | Fault::Twice => request.method() == Method::PUT,
            Fault::Short => request.method() == Method::GET && !is_list,
            Fault::Stale => is_list,
            _ => true,
        }
    }
}

pub(crate) const FAULTS: [Fault; 11] = [
    Fault::Busy,
    Fault::Failed,
    Fault::FailedAfter,
    Fault::Reset,
    Fault::LostReply,
    Fault::Late,
    Fault::Conflict,
    Fault::Twice,
    Fault::Short,
    Fault::Stale,
    Fault::Slow,
];

const SLOWLY: Duration = Duration::from_millis(30);

type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// A request whose body has arrived, to be done once, twice or later.
type Whole = Request<Bytes>;

struct Shared {
    s3: S3Service,
    random: Mutex<Numbers>,
    /// How many of a hundred requests go wrong.
    rate: AtomicU64,
    is_away: AtomicBool,
    /// The answer to every request.
    refusal: Mutex<Option<(u16, &'static str)>>,
    /// How many requests are never answered.
    silent: AtomicU64,
    late: Mutex<Vec<Whole>>,
    /// Happens to the next request to which it can.
    next: Mutex<Option<Fault>>,
    requests: AtomicU64,
    end: Notify,
}

/// A server on loopback.
pub(crate) struct WrongServer {
    shared: Arc<Shared>,
    port: u16,
    thread: Option<JoinHandle<()>>,
}

impl WrongServer {
    /// `rate` of a hundred requests go wrong.
    pub(crate) fn start(seed: u64, rate: u64) -> WrongServer {
        let mut builder = S3ServiceBuilder::new(Bucket::default());
        builder.set_auth(SimpleAuth::from_single(USER, SECRET));
        let shared = Arc::new(Shared {
            s3: builder.build(),
            random: Mutex::new(Numbers::new(seed)),
            rate: AtomicU64::new(rate),
            is_away: AtomicBool::new(false),
            refusal: Mutex::default(),
            silent: AtomicU64::new(0),
            late: Mutex::default(),
            next: Mutex::default(),
            requests: AtomicU64::new(0),
            end: Notify::new(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let of_thread = Arc::clone(&shared);
        let thread = Some(std::thread::spawn(move || run(listener, &of_thread)));
        WrongServer { shared, port, thread }
    }

    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        environment(self.port, SECRET)
    }

    /// From now on no request is done, or all are again.
    pub(crate) fn set_away(&self, is_away: bool) {
        self.shared.is_away.store(is_away, Ordering::SeqCst);
    }

    /// From now on every request is refused with this status and this code, or none is any more.
    pub(crate) fn refuse(&self, refusal: Option<(u16, &'static str)>) {
        *self.shared.refusal.lock().unwrap() = refusal;
    }

    pub(crate) fn set_rate(&self, rate: u64) {
        self.shared.rate.store(rate, Ordering::SeqCst);
    }

    /// The next requests are never answered.
    pub(crate) fn be_silent(&self, requests: u64) {
        self.shared.silent.store(requests, Ordering::SeqCst);
    }

    pub(crate) fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Goes wrong in this way as soon as it can.
    pub(crate) fn go_wrong(&self, fault: Fault) {
        *self.shared.next.lock().unwrap() = Some(fault);
    }

    /// Whether that has happened.
    pub(crate) fn went_wrong(&self) -> bool {
        self.shared.next.lock().unwrap().is_none()
    }
}

impl Drop for WrongServer {
    fn drop(&mut self) {
        self.shared.end.notify_one();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn run(listener: TcpListener, shared: &Arc<Shared>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        loop {
            let stream = tokio::select! {
                () = shared.end.notified() => return,
                accepted = listener.accept() => accepted.unwrap().0,
            };
            let shared = Arc::clone(shared);
            tokio::spawn(async move {
                let service = service_fn(|request| shared.serve(request));
                let http = hyper::server::conn::http1::Builder::new();
                // An error ends the connection, as the fault wants it.
                let _ = http.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
}

impl Shared {
    /// An error ends the connection without an answer.
    async fn serve(&self, request: Request<Incoming>) -> io::Result<Answer> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        if self.is_away.load(Ordering::SeqCst) {
            return Err(lost());
        }
        if let Some((status, code)) = *self.refusal.lock().unwrap() {
            return Ok(refusal(status, code));
        }
        let one_less = |left: u64| left.checked_sub(1);
        if self.silent.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            return std::future::pending().await;
        }
        let request = Request::from_parts(head, body);
        let fault = self.fault(&request);
        self.land().await;
        self.answer(request, fault).await
    }

    fn fault(&self, request: &Whole) -> Option<Fault> {
        if let Some(fault) = self.next.lock().unwrap().take_if(|fault| fault.fits(request)) {
            return Some(fault);
        }
        let mut random = self.random.lock().unwrap();
        let fault = FAULTS[random.below(FAULTS.len() as u64) as usize];
        let is_unlucky = random.below(100) < self.rate.load(Ordering::SeqCst);
        (is_unlucky && fault.fits(request)).then_some(fault)
    }

    /// Now and then, carries out a late request. Its outcome goes nowhere.
    async fn land(&self) {
        let is_now = self.random.lock().unwrap().below(3) == 0;
        let late = self.late.lock().unwrap().pop().filter(|_| is_now);
        if let Some(request) = late {
            let _ = self.act(request).await;
        }
    }

    async fn answer(&self, request: Whole, fault: Option<Fault>) -> io::Result<Answer> {
        match fault {
            Some(Fault::Busy) => return Ok(refusal(503, "SlowDown")),
            Some(Fault::Failed) => return Ok(refusal(500, "InternalError")),
            Some(Fault::Conflict) => return Ok(refusal(409, "ConditionalRequestConflict")),
            Some(Fault::Refused(status, code)) => return Ok(refusal(status, code)),
            Some(Fault::Reset) => return Err(lost()),
            Some(Fault::Late) => {
                self.late.lock().unwrap().push(request);
                return Err(lost());
            }
            Some(Fault::Twice) => drop(self.act(request.clone()).await?),
            Some(Fault::Slow) => tokio::time::sleep(SLOWLY).await,
            _ => {}
        }
        let mut request = request;
        if fault == Some(Fault::Stale) {
            request.extensions_mut().insert(Stale);
        }
        let answer = self.act(request).await?;
        match fault {
            Some(Fault::FailedAfter) => Ok(refusal(500, "InternalError")),
            Some(Fault::LostReply) => Err(lost()),
            Some(Fault::Short) => Ok(answer.map(cut_short)),
            _ => Ok(answer.map(whole)),
        }
    }

    async fn act(&self, request: Whole) -> io::Result<Response<Bytes>> {
        let answer = match self.s3.call(request.map(s3s::Body::from)).await {
            Ok(answer) => answer,
            Err(error) => return Err(io::Error::other(error)),
        };
        let (head, body) = answer.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        Ok(Response::from_parts(head, body))
    }
}

fn lost() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

fn refusal(status: u16, code: &str) -> Answer {
    let text = format!("<Error><Code>{code}</Code><Message>by the test</Message></Error>");
    Response::builder().status(status).body(whole(text.into())).unwrap()
}

fn whole(bytes: Bytes) -> UnsyncBoxBody<Bytes, io::Error> {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// The header says more than comes.
fn cut_short(bytes: Bytes) -> UnsyncBoxBody<Bytes, io::Error> {
    let half = bytes.slice(..bytes.len() / 2);
    StreamBody::new(stream::iter([Ok(Frame::data(half)), Err(lost())])).boxed_unsync()
}
