//! The meaning of the answers with which a server refuses a request.
//!
//! A refusal is final where only a new start mends it, with another URL, other variables or another
//! store, or where trying again would harm. After all others the request is made again.
//! `docs/shipping-stores.md` has the same table.

use super::StoreErrorKind;

/// Codes of S3, Google and Azure that mean something else than their status does.
const CODES: [(&[&str], StoreErrorKind); 4] = [
    // Another user may make a bucket of that name, and would get the log.
    (&["NoSuchBucket", "ContainerNotFound"], StoreErrorKind::NoBucket),
    // No bucket can have this name; the bucket is in another region. Both are read at the start.
    (
        &[
            "InvalidBucketName",
            "InvalidResourceName",
            "AuthorizationHeaderMalformed",
            "IllegalLocationConstraintException",
        ],
        StoreErrorKind::Other,
    ),
    // The store cannot create an object only if it is absent.
    (
        &["NotImplemented", "MethodNotAllowed", "UnsupportedHeader", "UnsupportedHttpVerb"],
        StoreErrorKind::Other,
    ),
    // With status 400. The next temporary credentials mend it.
    (
        &[
            "ExpiredToken",
            "ExpiredTokenException",
            "InvalidAuthenticationInfo",
            "InvalidIdentityToken",
            "InvalidToken",
            "TokenRefreshRequired",
        ],
        StoreErrorKind::Denied,
    ),
];

/// With this `object_store` says that a bucket is in another region.
const ELSEWHERE: &str = "redirect without LOCATION";

/// The meaning of an error's text. `None`: there was no answer.
pub(super) fn kind_of(text: &str) -> Option<StoreErrorKind> {
    if text.contains(ELSEWHERE) {
        return Some(StoreErrorKind::Other);
    }
    let status = status_of(text)?;
    let code = element(text, "Code");
    let known = CODES.iter().find(|(codes, _)| codes.iter().any(|known| Some(*known) == code));
    Some(match (known, status) {
        (Some((_, kind)), _) => *kind,
        (None, "401" | "403") => StoreErrorKind::Denied,
        // Too many requests, a body that was torn on the way, a conflict with another request, a
        // proxy between: it may be over later.
        (None, _) => StoreErrorKind::Transient,
    })
}

/// The three digits with which the server has answered.
fn status_of(text: &str) -> Option<&str> {
    text.split_once("status code: ")?.1.get(..3)
}

/// The text in the first element of this name.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, from) = text.split_once(&format!("<{name}>"))?;
    Some(from.split_once('<')?.0)
}

/// The text without markup: of the answer only its code and its message.
pub(super) fn plain(text: &str) -> String {
    let (Some(code), Some((before, _))) = (element(text, "Code"), text.split_once('<')) else {
        return text.to_string();
    };
    match element(text, "Message") {
        Some(message) => format!("{before}{code}: {message}"),
        None => format!("{before}{code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use StoreErrorKind::{Denied, NoBucket, Other, Transient};

    /// As `object_store` says it.
    fn said(status: u16, code: &str) -> String {
        format!(
            "Generic S3 error: Error performing PUT http://127.0.0.1:9/b/k in 2ms - Server \
             returned non-2xx status code: {status} Bad Request: <?xml version=\"1.0\"?>\n<Error>\
             <Code>{code}</Code><Message>The words of the server</Message></Error>"
        )
    }

    #[test]
    fn each_answer_has_its_meaning() {
        for (status, code, kind) in [
            (400, "ExpiredToken", Denied),
            (400, "InvalidToken", Denied),
            (403, "InvalidAccessKeyId", Denied),
            (403, "SignatureDoesNotMatch", Denied),
            (403, "AccessDenied", Denied),
            (403, "RequestTimeTooSkewed", Denied),
            (403, "AuthenticationFailed", Denied),
            (401, "", Denied),
            (400, "RequestTimeout", Transient),
            (400, "BadDigest", Transient),
            (400, "IncompleteBody", Transient),
            (400, "SomethingNew", Transient),
            (404, "NoSuchUpload", Transient),
            (408, "", Transient),
            (409, "ConditionalRequestConflict", Transient),
            (409, "OperationAborted", Transient),
            (409, "ContainerBeingDeleted", Transient),
            (412, "PreconditionFailed", Transient),
            (429, "", Transient),
            (500, "InternalError", Transient),
            (500, "OperationTimedOut", Transient),
            (503, "SlowDown", Transient),
            (503, "ServerBusy", Transient),
            (404, "NoSuchBucket", NoBucket),
            (404, "ContainerNotFound", NoBucket),
            (400, "InvalidBucketName", Other),
            (400, "AuthorizationHeaderMalformed", Other),
            (405, "MethodNotAllowed", Other),
            (501, "NotImplemented", Other),
        ] {
            assert_eq!(kind_of(&said(status, code)), Some(kind), "{status} {code}");
        }
        assert_eq!(kind_of("Generic S3 error: connection refused"), None);
        assert_eq!(kind_of("Received redirect without LOCATION, this"), Some(Other));
    }

    #[test]
    fn markup_is_left_out() {
        let text = plain(&said(400, "ExpiredToken"));
        assert!(text.ends_with("400 Bad Request: ExpiredToken: The words of the server"), "{text}");
        assert!(!text.contains('<'));
        assert_eq!(plain("no <answer>"), "no <answer>");
    }
}
