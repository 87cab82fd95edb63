import { Type } from 'typebox'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import { extendAppParams, open, Time } from './schemas.ts'

/** The service's own chain is reached under the application id `system`. */
const ChainParams = extendAppParams({})
const Whole = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

const ofChain =
  'For anyone where the application has something that strangers may read or buy; else its size is for keys with Read.'

/** The receipt of a paid answer. */
export const ReceiptId = Type.Optional(
  Type.String({ maxLength: 64, description: 'of an answer that holds the record' }),
)

export const RecordProof = Type.Object(
  {
    type: Type.String(),
    app: Type.String(),
    height: Type.Integer(),
    sequence: Type.Integer({ description: 'place within the block, from 0' }),
    leaf_index: Type.Integer(),
    entry: Type.Optional(
      Type.String({ description: "the leaf's bytes in base64, for keys with Read" }),
    ),
    leaf_hash: Type.Optional(
      Type.String({
        description: 'SHA-256 (hex) of a zero byte and the leaf, for all others',
      }),
    ),
    entry_header: Type.Optional(
      Type.String({
        description:
          'for who bought the record: the leaf is this, a line feed, and the record as the answer has it',
      }),
    ),
    inclusion: Type.Object({}, open),
    checkpoint: Type.String(),
    block: Type.Object({ header: Type.String(), signature: Type.String() }),
    key: Type.String({ description: 'verifier key of checkpoint and block' }),
  },
  { $id: 'RecordProof', description: '`tollbase verify` checks it offline' },
)

export const chain = defineContract({
  getCheckpoint: {
    method: 'GET',
    path: '/api/apps/:app/chain/checkpoint',
    area: 'Chain',
    summary: "The newest signed checkpoint of an application's chain (C2SP form)",
    description: ofChain,
    access: 'by-policy',
    shows: 'hashes',
    params: ChainParams,
    reply: Type.Object({
      origin: Type.String(),
      size: Type.Integer(),
      root: Type.String(),
      height: Type.Integer(),
      checkpoint: Type.String(),
      key: Type.String(),
    }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
  getBlock: {
    method: 'GET',
    path: '/api/apps/:app/chain/blocks/:height',
    area: 'Chain',
    summary: 'A block: header, signature and the hashes of its entries, never their content',
    description: ofChain,
    access: 'by-policy',
    shows: 'hashes',
    params: extendAppParams({ height: Whole }),
    reply: Type.Object({
      height: Type.Integer(),
      hash: Type.String(),
      previous_hash: Type.String(),
      time: Time,
      tree_size: Type.Integer(),
      root: Type.String(),
      body_hash: Type.String(),
      entry_count: Type.Integer(),
      header: Type.String(),
      signature: Type.String(),
      leaf_hashes: Type.Array(Type.String()),
    }),
    errors: ['APPLICATION_NOT_FOUND', 'BLOCK_NOT_FOUND'],
  },
  getEntryProof: {
    method: 'GET',
    path: '/api/apps/:app/chain/proof',
    area: 'Chain',
    summary:
      'Proof that an entry is in the chain, by `height` and `sequence`, or that a record is, by `collection` and `key`',
    description:
      'For anyone, with hashes only, where the record is open to strangers; with the bytes of the record, when it is asked for by its key, for keys with Read. Of what is sold a record is asked for by its key with the `receipt_id` of an answer that holds it whole, while that answer is kept; the proof then has the `entry_header`, with which the buyer makes the leaf from the record that he has.',
    access: 'by-policy',
    shows: 'hashes',
    params: ChainParams,
    query: Type.Object({
      height: Type.Optional(Whole),
      sequence: Type.Optional(Whole),
      collection: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
      key: Type.Optional(Type.String({ maxLength: limits.recordKeyCharsMax })),
      receipt_id: ReceiptId,
    }),
    reply: RecordProof,
    errors: [
      'APPLICATION_NOT_FOUND',
      'COLLECTION_NOT_FOUND',
      'RECORD_NOT_FOUND',
      'RECEIPT_NOT_FOUND',
      'FIELD_NOT_OFFERED',
      'NO_CHAIN_ENTRY',
    ],
  },
  getConsistencyProof: {
    method: 'GET',
    path: '/api/apps/:app/chain/consistency',
    area: 'Chain',
    summary: 'Proof that the tree of size `from` is a prefix of the tree of size `to`',
    description: ofChain,
    access: 'by-policy',
    shows: 'hashes',
    params: ChainParams,
    query: Type.Object({ from: Whole, to: Whole }),
    reply: Type.Object({
      from: Type.Integer(),
      to: Type.Integer(),
      hashes: Type.Array(Type.String()),
    }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
})
