import { Type } from 'typebox'
import { BlobAccepted } from './blobs.ts'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import {
  CollectionParam,
  CollectionParams,
  Described,
  extendAppParams,
  Nullable,
  StringEnum,
  Time,
  WaitQuery,
} from './schemas.ts'

const UploadParams = extendAppParams({
  collection: CollectionParam,
  upload: Type.String({ minLength: 1, maxLength: 128, description: 'the id of the upload' }),
})

const OpenUpload = Type.Object({
  upload_id: Type.String(),
  status: StringEnum(['open', 'received', 'stored'], {
    description:
      'open: bytes are missing; received: all are there and wait for finishUpload; stored: `blob_id` names the blob',
  }),
  offset: Type.Integer({ description: 'bytes that are there; the next ones begin here' }),
  length: Type.Integer({ description: 'bytes of the whole blob' }),
  blob_id: Nullable(Type.String({ description: 'once it is stored' })),
  expires_at: Described(Time, 'when its bytes are deleted, if nothing more comes'),
})

const facts = ['Tus-Resumable', 'Upload-Offset', 'Upload-Length', 'Upload-Expires'] as const
const stored = ['X-Blob-Id', 'X-Ticket-Id'] as const

/** Uploads in several requests, by the protocol tus 1.0 (core, creation, creation-with-upload, expiration, termination). */
export const uploads = defineContract({
  createUpload: {
    method: 'POST',
    path: '/api/apps/:app/blobs/:collection/uploads',
    area: 'Blobs',
    summary: 'Begin a resumable upload (tus 1.0)',
    description:
      'Send `Tus-Resumable: 1.0.0`, `Upload-Length` and, in `Upload-Metadata`, `filename`, `filetype` and `metadata` (a JSON object), each in base64. The answer has the address of the upload in `Location`. The POST may have no body, or the first bytes (`application/offset+octet-stream`): `Upload-Offset` says how many are there, and a blob whose bytes all are, or that has none, is stored at once, and `X-Blob-Id` and `X-Ticket-Id` name it and its task. All that could refuse the blob later is judged here: rights, size, metadata, quota and room. Where uploads have a price, it is paid at the end (finishUpload).',
    access: 'Write',
    shows: 'outcome',
    status: 201,
    params: CollectionParams,
    stream: 'application/offset+octet-stream',
    bodyOptional: true,
    requestHeaders: ['Tus-Resumable', 'Upload-Length', 'Upload-Metadata', 'Content-Digest'],
    reply: OpenUpload,
    replyHeaders: ['Location', ...facts, ...stored],
    errors: [
      'COLLECTION_NOT_FOUND',
      'CONFLICT',
      'SCHEMA_VIOLATION',
      'QUOTA_EXCEEDED',
      'UPLOAD_VERSION',
      'VIEW_EXISTS',
    ],
  },
  getUpload: {
    method: 'GET',
    path: '/api/apps/:app/blobs/:collection/uploads/:upload',
    area: 'Blobs',
    summary: 'See how far an upload is',
    description:
      'HEAD has the same in `Upload-Offset` and `Upload-Length`. Once it is stored, `blob_id` names the blob.',
    access: 'Write',
    shows: 'outcome',
    params: UploadParams,
    requestHeaders: ['Tus-Resumable'],
    reply: OpenUpload,
    replyHeaders: [...facts, ...stored],
    errors: ['UPLOAD_NOT_FOUND', 'UPLOAD_VERSION'],
  },
  continueUpload: {
    method: 'PATCH',
    path: '/api/apps/:app/blobs/:collection/uploads/:upload',
    area: 'Blobs',
    summary: 'Send the next bytes of an upload',
    description:
      'The body is bytes from `Upload-Offset` on (`application/offset+octet-stream`); 409 where that is not where the upload is. The answer says in `Upload-Offset` how far it is. With the last bytes the blob is stored, and `X-Blob-Id` and `X-Ticket-Id` name it and its task; where that has a price, they wait for finishUpload.',
    access: 'Write',
    shows: 'outcome',
    status: 204,
    params: UploadParams,
    stream: 'application/offset+octet-stream',
    requestHeaders: ['Tus-Resumable', 'Upload-Offset', 'Content-Digest'],
    reply: Type.Null(),
    replyHeaders: [...facts, ...stored],
    errors: [
      'UPLOAD_NOT_FOUND',
      'UPLOAD_VERSION',
      'CONFLICT',
      'SCHEMA_VIOLATION',
      'COLLECTION_NOT_FOUND',
      'VIEW_EXISTS',
    ],
  },
  finishUpload: {
    method: 'POST',
    path: '/api/apps/:app/blobs/:collection/uploads/:upload/finish',
    area: 'Blobs',
    summary: 'Pay for an upload whose bytes are there, and store the blob',
    description: `Needed where uploads have a price: the answer is 402 with the price, and the paid request stores the blob. The bytes wait for ${limits.openUploadMs / 3_600_000} hours. Where the blob is stored, the answer names it again.`,
    access: 'Write',
    shows: 'outcome',
    paid: true,
    status: 202,
    otherStatuses: [200],
    params: UploadParams,
    query: WaitQuery,
    reply: BlobAccepted,
    errors: [
      'UPLOAD_NOT_FOUND',
      'CONFLICT',
      'SCHEMA_VIOLATION',
      'COLLECTION_NOT_FOUND',
      'VIEW_EXISTS',
    ],
  },
  cancelUpload: {
    method: 'DELETE',
    path: '/api/apps/:app/blobs/:collection/uploads/:upload',
    area: 'Blobs',
    summary: 'Give an upload up',
    description: 'Its bytes are gone at once. A blob that was stored stays.',
    access: 'Write',
    shows: 'outcome',
    status: 204,
    params: UploadParams,
    requestHeaders: ['Tus-Resumable'],
    reply: Type.Null(),
    replyHeaders: ['Tus-Resumable'],
    errors: ['UPLOAD_NOT_FOUND', 'UPLOAD_VERSION'],
  },
})
