import { Type } from 'typebox'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import { extendAppParams, Inclusion, Nullable, open, PageQuery, Time } from './schemas.ts'

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
    inclusion: Inclusion,
    checkpoint: Type.String(),
    block: Type.Object({ header: Type.String(), signature: Type.String() }),
    key: Type.String({ description: 'verifier key of checkpoint and block' }),
    anchor: Type.Optional(
      Type.Object(
        {},
        { ...open, description: 'where another chain has a root that covers the entry already' },
      ),
    ),
  },
  { $id: 'RecordProof', description: '`tollbase verify` checks it offline' },
)

/** A root of the service's own chain on another chain. */
const Anchor = Type.Object(
  {
    network: Type.String({ description: 'CAIP-2' }),
    contract: Type.Optional(
      Type.String({
        description: 'EVM chains: address of contracts/Anchors.sol, which emits the event',
      }),
    ),
    signer: Type.Optional(Type.String({ description: 'EVM chains: sender of the transaction' })),
    namespace: Type.Optional(
      Type.String({ description: 'Celestia: namespace of the blob, base64' }),
    ),
    commitment: Type.Optional(
      Type.String({ description: 'Celestia: commitment of the blob, base64' }),
    ),
    transaction: Nullable(
      Type.String({
        description: 'hash of the transaction; null where a node of Celestia did not tell it',
      }),
    ),
    block_number: Type.Integer(),
    block_hash: Type.String(),
    time: Time,
    gas_used: Type.Optional(Type.Integer({ description: 'EVM chains' })),
    system: Type.Object(
      { size: Type.Integer(), root: Type.String() },
      { description: "the tree of the service's own chain that the transaction names" },
    ),
    head: Type.Optional(
      Type.Object(
        { height: Type.Integer(), size: Type.Integer(), root: Type.String() },
        {
          description:
            "how far the application's chain is covered, as an entry of the service's own chain tells",
        },
      ),
    ),
  },
  { $id: 'Anchor' },
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
      'Anyone gets a proof with hashes only, if strangers may read the record. A key with Read that asks by `collection` and `key` gets the bytes too. A buyer asks by these and the `receipt_id` of an answer that holds the whole record, while that answer is kept. The proof then has the `entry_header`, from which the buyer makes the leaf of the record that was bought.',
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
      'QUERY_TOO_EXPENSIVE',
      'QUERY_TIMEOUT',
      'UNAVAILABLE',
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
  listAnchors: {
    method: 'GET',
    path: '/api/apps/:app/chain/anchors',
    area: 'Chain',
    summary:
      "Transactions on other chains that hold a root of the service's own chain, which covers this one, newest first",
    description: ofChain,
    access: 'by-policy',
    shows: 'hashes',
    params: ChainParams,
    query: PageQuery,
    reply: Type.Object({
      anchors: Type.Array(Anchor),
      next_cursor: Nullable(Type.String()),
    }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
  listCosignatures: {
    method: 'GET',
    path: '/api/apps/:app/chain/cosignatures',
    area: 'Chain',
    summary: "The newest checkpoint of an application's chain that each configured witness signed",
    description: ofChain,
    access: 'by-policy',
    shows: 'hashes',
    params: ChainParams,
    reply: Type.Object({
      cosignatures: Type.Array(
        Type.Object({
          witness: Type.String(),
          key: Type.String({ description: "the witness's verifier key" }),
          size: Type.Integer(),
          time: Time,
          checkpoint: Type.String({
            description: "signed note with the chain's signature and the witness's",
          }),
        }),
      ),
    }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
})
