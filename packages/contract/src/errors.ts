import { limits } from './limits.ts'

/**
 * The closed catalogue of errors. A row maps a code to its HTTP status and the sentence that says what to do;
 * docs/errors.md is made from it.
 */
export const errors = {
  VALIDATION_FAILED: { status: 400, text: 'The request is not valid.' },
  UNKNOWN_MEMBER: {
    status: 400,
    text: 'The request has a member that is not known; details.field names it.',
  },
  PAYMENT_MALFORMED: { status: 400, text: 'The payment header cannot be read.' },
  CREDENTIALS_CONFLICT: { status: 400, text: 'The request carries two different keys; send one.' },
  NO_CHAIN_ENTRY: { status: 404, text: 'There is no entry at this height and sequence.' },
  UNAUTHORIZED: { status: 401, text: 'A valid key of this application is needed.' },
  PAYMENT_REQUIRED: { status: 402, text: 'Payment is required.' },
  FORBIDDEN: { status: 403, text: 'The key lacks the permission for this.' },
  SPENDING_LIMIT: {
    status: 403,
    text: 'The limits of the key that pays do not allow this; details.limit names the one.',
  },
  FIELD_NOT_OFFERED: { status: 403, text: 'The owner does not offer this field for this use.' },
  DERIVATION_DENIED: {
    status: 403,
    text: 'The owner does not allow others to join, aggregate or combine this collection.',
  },
  GRANT_NEEDED: {
    status: 403,
    text: 'The owner of a source has not granted, or has taken back, its use in views.',
  },
  ROUTE_NOT_FOUND: { status: 404, text: 'There is no such endpoint; GET /docs lists them.' },
  APPLICATION_NOT_FOUND: { status: 404, text: 'There is no such application.' },
  COLLECTION_NOT_FOUND: { status: 404, text: 'There is no such collection.' },
  INDEX_NOT_FOUND: { status: 404, text: 'There is no such index.' },
  VIEW_NOT_FOUND: { status: 404, text: 'There is no such view.' },
  GRANT_NOT_FOUND: { status: 404, text: 'There is no such grant.' },
  DATA_SET_NOT_FOUND: {
    status: 404,
    text: 'There is no such data set. The application or the operator of the service can provide one.',
  },
  QUERY_NOT_FOUND: { status: 404, text: 'There is no such query, or none of this version.' },
  RELATION_NOT_FOUND: { status: 404, text: 'There is no such relation.' },
  RECORD_NOT_FOUND: { status: 404, text: 'There is no such record.' },
  BLOB_NOT_FOUND: { status: 404, text: 'There is no such blob.' },
  UPLOAD_NOT_FOUND: {
    status: 404,
    text: `There is no such upload. An upload that receives nothing for ${limits.openUploadMs / 3_600_000} hours is deleted.`,
  },
  KEY_NOT_FOUND: { status: 404, text: 'There is no such key.' },
  TASK_NOT_FOUND: { status: 404, text: 'There is no such task.' },
  AUTHORIZATION_NOT_FOUND: { status: 404, text: 'There is no such authorization.' },
  PAYMENT_NOT_FOUND: { status: 404, text: 'There is no such payment.' },
  TRANSACTION_NOT_FOUND: { status: 404, text: 'There is no such transaction.' },
  PASS_NOT_FOUND: {
    status: 404,
    text: 'There is no such time pass, or none is sold for this target and time.',
  },
  RECEIPT_NOT_FOUND: { status: 404, text: 'There is no such receipt.' },
  BLOCK_NOT_FOUND: { status: 404, text: 'There is no such block.' },
  RECORD_EXPIRED: {
    status: 410,
    text: 'The record is past the retention of its collection: its content is deleted, its hash is kept.',
  },
  METHOD_NOT_ALLOWED: {
    status: 405,
    text: 'The endpoint has other methods; the header Allow lists them.',
  },
  REQUEST_TIMEOUT: { status: 408, text: 'The request did not arrive in time.' },
  CONFLICT: { status: 409, text: 'The request conflicts with what is there.' },
  APPLICATION_EXISTS: { status: 409, text: 'An application of this id already exists.' },
  COLLECTION_EXISTS: { status: 409, text: 'A collection of this name already exists.' },
  VIEW_EXISTS: { status: 409, text: 'A view of this name already exists.' },
  RECORD_EXISTS: { status: 409, text: 'A record of this key already exists.' },
  NOT_ON_PRIVATE: {
    status: 409,
    text: 'The collection is encrypted, and this would need its plaintext in the database.',
  },
  API_COLLECTION: {
    status: 409,
    text: 'An API collection holds no records; read it with GET /api/apps/{app}/api-collections/{name}/data.',
  },
  LAST_ADMIN_KEY: {
    status: 409,
    text: 'The last Admin key cannot be revoked, or replaced by one without Admin, with a key; ask the operator or sign as the owner.',
  },
  PRICE_REMOVED: {
    status: 409,
    text: 'With this change strangers could read free of charge what has a price today. If you want that, name it in confirm_free.',
  },
  QUOTA_EXCEEDED: {
    status: 409,
    text: 'The application has used up its quota; the operator of the service can raise it.',
  },
  IDEMPOTENCY_KEY_USED: {
    status: 409,
    text: 'This Idempotency-Key was used for another request; a new request needs a new one.',
  },
  REQUEST_IN_PROGRESS: {
    status: 409,
    text: 'The request of this Idempotency-Key is still under way. Wait as long as Retry-After says, then send it again.',
  },
  PAYMENT_ALREADY_USED: { status: 409, text: 'This payment was made for another request.' },
  PAYMENT_HELD: {
    status: 409,
    text: 'The money of this payment came before the service was restored from a backup, so nobody knows what it has bought. It buys nothing and is held for its payer: ask the operator of the service to release it to your balance, by details.payment_id. To buy now, send the request with another payment.',
  },
  PAYOUT_NOT_POSSIBLE: {
    status: 409,
    text: 'A payout is not possible now: the balance is too low, or there is no destination.',
  },
  BALANCE_TOO_LOW: {
    status: 409,
    text: 'The balance is too low; details.available is the amount that is available.',
  },
  TRANSFERS_NOT_CONFIGURED: {
    status: 409,
    text: 'This service cannot send money on that network; its operator must configure pay_to_key_file.',
  },
  OFFER_CHANGED: {
    status: 409,
    text: 'The request is not any more what was paid for: its source, its price or its answer has changed. The money is on the payer’s balance; send the request again.',
  },
  PAYMENT_REPLY_GONE: {
    status: 410,
    text: 'The answer that this payment bought is no longer kept; the receipt is.',
  },
  ANSWER_LOST: {
    status: 410,
    text: 'The request of this Idempotency-Key was carried out, at least in part, but its answer is not kept: the service stopped before that, or records of the application were erased since. Read the current state.',
  },
  BLOB_MOVED: {
    status: 307,
    text: 'The encryption of the collection has changed, and this blob has the id in details.blob_id now. Ask for that, at the address in Location.',
  },
  BLOB_GONE: {
    status: 410,
    text: 'The bytes of this blob are not on this server any more; its row still says what it was.',
  },
  PRICING_CHANGED: {
    status: 412,
    text: 'The prices have changed since the version in If-Match; read them again.',
  },
  UPLOAD_VERSION: { status: 412, text: 'Resumable uploads need Tus-Resumable: 1.0.0.' },
  PAYLOAD_TOO_LARGE: { status: 413, text: 'The request body is too large.' },
  RESULT_TOO_LARGE: { status: 413, text: 'The answer would be too large; give a limit.' },
  QUERY_TOO_EXPENSIVE: {
    status: 413,
    text: 'The query needs more memory or temporary space than one query may use; narrow it.',
  },
  RANGE_NOT_SATISFIABLE: {
    status: 416,
    text: 'The range begins after the end; details.size is the size.',
  },
  SCHEMA_VIOLATION: { status: 422, text: 'A record breaks the schema of its collection.' },
  RATE_LIMITED: {
    status: 429,
    text: 'Too many requests; wait as long as Retry-After says. details.limit names the limit.',
  },
  WITHDRAWAL_LIMIT: {
    status: 429,
    text: 'There were as many withdrawals as 24 hours may have; details.resets_at says when the next one is possible.',
  },
  HEADERS_TOO_LARGE: { status: 431, text: 'The address and the headers are too large.' },
  INTERNAL: { status: 500, text: 'Something went wrong on our side.' },
  UPSTREAM_FAILED: {
    status: 502,
    text: 'The API behind this collection gave no answer that can be sold; nothing is charged.',
  },
  UPSTREAM_TIMEOUT: {
    status: 504,
    text: 'The API behind this collection took too long; nothing is charged.',
  },
  UNAVAILABLE: { status: 503, text: 'The service cannot do this now; try again shortly.' },
  VIEW_NOT_READY: {
    status: 503,
    text: 'The view is being filled for the first time; try again shortly.',
  },
  STORAGE_FULL: {
    status: 503,
    text: 'The storage is full: nothing can be written or sold until there is room again.',
  },
  STORAGE_READ_ONLY: {
    status: 503,
    text: 'The storage is read-only now: nothing can be written or sold until it accepts writes again.',
  },
  PAYMENT_NETWORK_UNREACHABLE: {
    status: 503,
    text: 'The payment network cannot be reached; nothing was charged.',
  },
  PAYMENT_PENDING: {
    status: 503,
    text: 'The payment is being settled; repeat the same request with the same payment.',
  },
  QUERY_TIMEOUT: { status: 503, text: 'The query took too long; narrow it or add an index.' },
} as const satisfies Record<string, { readonly status: number; readonly text: string }>

export type ErrorCode = keyof typeof errors
