/** A header as openapi.json describes it, and the name of its component there. */
export type HeaderDescription = {
  readonly component: string
  readonly description: string
  readonly schema: { readonly type: 'string' | 'integer'; readonly [keyword: string]: unknown }
}

const text = { type: 'string' } as const
const bytes = { type: 'integer', minimum: 0 } as const

/** The headers of replies that tell a client something beyond HTTP itself. Browsers may read each of them. */
export const replyHeaders = {
  'X-Request-Id': {
    component: 'RequestId',
    description:
      'The id of the request, by which the operator finds it; an error has it as `request_id` too.',
    schema: text,
  },
  RateLimit: {
    component: 'RateLimit',
    description:
      'The rest of each quota (r) and the seconds until it is whole again (t), as draft-ietf-httpapi-ratelimit-headers-10 writes it; on every answer that a quota applied to.',
    schema: text,
  },
  'RateLimit-Policy': {
    component: 'RateLimitPolicy',
    description: 'Each quota that applied (q) and its window in seconds (w).',
    schema: text,
  },
  'Retry-After': {
    component: 'RetryAfter',
    description: 'Seconds to wait before the next try.',
    schema: { type: 'integer', minimum: 1 },
  },
  'PAYMENT-REQUIRED': {
    component: 'PaymentRequired',
    description: 'The payment requirements, x402 version 2: base64 of JSON.',
    schema: text,
  },
  'X-PAYMENT-RESPONSE': {
    component: 'PaymentResponseV1',
    description: 'The settlement, x402 version 1: base64 of JSON; only on a paid reply.',
    schema: text,
  },
  'PAYMENT-RESPONSE': {
    component: 'PaymentResponseV2',
    description: 'The settlement, x402 version 2: base64 of JSON; only on a paid reply.',
    schema: text,
  },
  'X-Receipt-Id': {
    component: 'ReceiptId',
    description: 'The id of the receipt; only on a paid reply.',
    schema: text,
  },
  'X-Payment-Id': {
    component: 'PaymentId',
    description:
      'The id of the payment, by which lists of transactions name it; only on a paid reply.',
    schema: text,
  },
  'Idempotent-Replayed': {
    component: 'IdempotentReplayed',
    description: '`true` where this is the answer that the same request got before.',
    schema: { type: 'string', enum: ['true'] },
  },
  'X-Next-Cursor': {
    component: 'NextCursor',
    description: 'The `cursor` of the next page, where the answer is CSV and there is more.',
    schema: text,
  },
  Location: {
    component: 'Location',
    description: 'The address of what was made, or of where it is now.',
    schema: { type: 'string', format: 'uri-reference' },
  },
  ETag: {
    component: 'ETag',
    description:
      'Names this state of what is answered, in quotes: for If-None-Match, and for If-Match where a change takes it. That of a blob is the hash in its id: the SHA-256 of its bytes, and in an encrypted collection that of the sealed bytes.',
    schema: text,
  },
  'Accept-Ranges': {
    component: 'AcceptRanges',
    description: 'Parts of the answer can be asked for by Range.',
    schema: text,
  },
  'Content-Range': {
    component: 'ContentRange',
    description: 'The part that this is, of how many bytes.',
    schema: text,
  },
  'Content-Disposition': {
    component: 'ContentDisposition',
    description: 'The name of the file.',
    schema: text,
  },
  Allow: {
    component: 'Allow',
    description: 'The methods of a path, where the one that was asked for is none of them (405).',
    schema: text,
  },
  'Tus-Resumable': {
    component: 'TusResumable',
    description: 'The version of tus that is spoken here.',
    schema: text,
  },
  'Tus-Version': {
    component: 'TusVersion',
    description: 'The versions of tus to choose from, where another one was asked for.',
    schema: text,
  },
  'Upload-Offset': {
    component: 'UploadOffset',
    description: 'Bytes that are there; the next ones begin here.',
    schema: bytes,
  },
  'Upload-Length': {
    component: 'UploadLength',
    description: 'Bytes of the whole blob.',
    schema: bytes,
  },
  'Upload-Expires': {
    component: 'UploadExpires',
    description: 'The time at which an upload that gets nothing more is deleted.',
    schema: text,
  },
  'X-Blob-Id': {
    component: 'BlobId',
    description: 'The id of the blob, once it is stored.',
    schema: text,
  },
  'X-Ticket-Id': {
    component: 'TicketId',
    description: 'The task of the blob, once it is stored.',
    schema: text,
  },
} as const satisfies Record<string, HeaderDescription>

export type ReplyHeader = keyof typeof replyHeaders
