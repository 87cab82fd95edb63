import { Type } from 'typebox'
import { limits } from './limits.ts'
import { makeProofMembers } from './proof-members.ts'
import { defineContract } from './route.ts'
import {
  CollectionParam,
  CollectionParams,
  extendAppParams,
  StringEnum,
  WaitQuery,
} from './schemas.ts'
import { StoredRecord } from './stored-record.ts'
import { TicketId } from './task.ts'

const BlobParams = extendAppParams({
  collection: CollectionParam,
  blob: Type.String({
    minLength: 1,
    maxLength: 128,
    description: '`blob_` and the SHA-256 of its bytes, as the upload answered it',
  }),
})

export const BlobAccepted = Type.Object({
  ticket_id: TicketId,
  blob_id: Type.String({ description: '`blob_` and the SHA-256 of the bytes in hex' }),
  status: Type.String({ description: '`queued`, or `Completed` with `?wait=true`' }),
  message: Type.String(),
  results: Type.Optional(
    Type.Array(StoredRecord, { description: 'with `?wait=true`: the place of its row' }),
  ),
})

export const blobs = defineContract({
  uploadBlob: {
    method: 'POST',
    path: '/api/apps/:app/blobs/:collection',
    area: 'Blobs',
    summary: 'Upload a blob, with metadata',
    description:
      'The bytes are read as a stream, and the id is made of their hash: the same bytes are the same blob. In an encrypted collection it is the hash of the sealed bytes, and each upload is a blob of its own. A collection of type `blob` is made where there is none. The row that /list finds has the members of `metadata` beside blob_id, sha256, size_bytes, content_type, filename and uploaded_at. Answered after the block is committed (202, with a ticket) or, with `?wait=true`, after the tables show it (200). A wallet that signs its request sends the hash of the body before it, as Content-Digest (RFC 9530, sha-256).',
    access: 'Write',
    shows: 'outcome',
    paid: true,
    status: 202,
    otherStatuses: [200],
    params: CollectionParams,
    query: WaitQuery,
    form: Type.Object(
      {
        blob: Type.String({
          format: 'binary',
          description: 'the bytes; their type is the Content-Type of this part',
        }),
        metadata: Type.Optional(
          Type.String({
            description:
              'a JSON object, whose members become fields of the row: `{"title": "Tea"}`',
          }),
        ),
        ...makeProofMembers(Type.String),
      },
      { examples: [{ blob: 'tea.png', metadata: '{"title":"Tea"}' }] },
    ),
    requestHeaders: ['Content-Digest'],
    reply: BlobAccepted,
    errors: ['COLLECTION_NOT_FOUND', 'CONFLICT', 'VIEW_EXISTS', 'SCHEMA_VIOLATION'],
  },
  getBlob: {
    method: 'GET',
    path: '/api/apps/:app/blobs/:collection/:blob',
    area: 'Blobs',
    summary: 'Get the bytes of a blob',
    description: `The answer is the bytes, with their content type, an ETag and ranges, if the request asks for bytes. A request does so by an Accept that names any type but JSON (a bare */* names none), by Range or If-None-Match, or by \`?format=raw\`. Any other request gets a JSON string, the base64 of the bytes. HEAD answers with the headers alone. A blob with a price is sold whole, by its size; the same payment then reads any range of it for ${limits.keptReplySeconds / 3600} hours.`,
    access: 'by-policy',
    shows: 'records',
    paid: true,
    hasHead: true,
    otherStatuses: [206, 304],
    params: BlobParams,
    query: Type.Object({
      format: Type.Optional(
        StringEnum(['raw'], {
          description: 'raw: the bytes, whatever `Accept` says; by default `Accept` decides',
        }),
      ),
    }),
    requestHeaders: ['Range', 'If-Range', 'If-None-Match'],
    reply: Type.String({ description: 'base64 of the bytes' }),
    otherReplyTypes: ['*/*'],
    replyHeaders: ['ETag', 'Accept-Ranges', 'Content-Range', 'Content-Disposition'],
    errors: [
      ...(['COLLECTION_NOT_FOUND', 'BLOB_NOT_FOUND', 'BLOB_MOVED', 'BLOB_GONE'] as const),
      'FIELD_NOT_OFFERED',
      'RANGE_NOT_SATISFIABLE',
    ],
  },
  deleteBlob: {
    method: 'DELETE',
    path: '/api/apps/:app/blobs/:collection/:blob',
    area: 'Blobs',
    summary: 'Delete a blob',
    description:
      'Its row is gone at once; its bytes go later, when no other row and no bought answer names them.',
    access: 'Write',
    shows: 'outcome',
    status: 202,
    otherStatuses: [200],
    params: BlobParams,
    query: WaitQuery,
    reply: BlobAccepted,
    errors: ['COLLECTION_NOT_FOUND', 'BLOB_NOT_FOUND', 'BLOB_MOVED'],
  },
})
