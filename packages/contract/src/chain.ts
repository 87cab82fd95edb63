import { Type } from 'typebox'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import {
  AppId,
  BlockHeight,
  CollectionParam,
  Described,
  Inclusion,
  NextCursor,
  Nullable,
  open,
  PageQuery,
  Time,
} from './schemas.ts'

/** The service's own chain is reached under the application id `system`. */
const ChainParams = Type.Object({
  app: Described(AppId, "the id of the application; `system` is the service's own chain"),
})
const defineWhole = (description: string) =>
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description })

const ofChain =
  'For anyone where the application has something that strangers may read or buy; else its size is for keys with Read.'

/** The receipt of a paid answer. */
export const ReceiptId = Type.Optional(
  Type.String({
    maxLength: 64,
    description: 'the `X-Receipt-Id` of a bought answer that holds the whole record',
  }),
)

export const RecordProof = Type.Object(
  {
    type: Type.String({ description: 'the form of the proof, which `tollbase verify` reads' }),
    app: Type.String(),
    height: BlockHeight,
    sequence: Type.Integer({ description: 'place within the block, from 0' }),
    leaf_index: Type.Integer({ description: 'its place in the tree, from 0' }),
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
    checkpoint: Type.String({ description: 'the signed note of the tree that it is in' }),
    block: Type.Object(
      { header: Type.String(), signature: Type.String() },
      { description: 'the signed header of the block, whose root covers the entry' },
    ),
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
    block_number: Type.Integer({ description: 'the block of that chain' }),
    block_hash: Type.String(),
    time: Described(Time, 'the time of that block'),
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
            "the part of the application's chain that is covered, as an entry of the service's own chain tells",
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
      origin: Type.String({
        description: 'the first line of the checkpoint, which names the chain',
      }),
      size: Type.Integer({ description: 'entries of the chain' }),
      root: Type.String({ description: 'the root over their tree' }),
      height: Type.Integer({ description: 'the newest block' }),
      checkpoint: Type.String({ description: 'the signed note' }),
      key: Type.String({ description: 'the verifier key of its signature' }),
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
    params: Type.Object({
      ...ChainParams.properties,
      height: defineWhole('the height of the block; the first one is 1'),
    }),
    reply: Type.Object({
      height: Type.Integer(),
      hash: Type.String(),
      previous_hash: Type.String(),
      time: Time,
      tree_size: Type.Integer({ description: 'entries of the chain up to this block' }),
      root: Type.String({ description: 'the root over their tree' }),
      body_hash: Type.String({ description: 'the hash over the entries of the block' }),
      entry_count: Type.Integer({ description: 'entries of this block' }),
      header: Type.String({ description: 'the bytes that are signed' }),
      signature: Type.String({ description: 'the signature of the producer over the header' }),
      leaf_hashes: Type.Array(Type.String(), { description: 'one for each entry, in their order' }),
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
      height: Type.Optional(defineWhole('the block of the entry, beside `sequence`')),
      sequence: Type.Optional(defineWhole('its place within the block, from 0')),
      collection: Type.Optional(
        Described(CollectionParam, 'the collection of the record, by name or id, beside `key`'),
      ),
      key: Type.Optional(
        Type.String({
          maxLength: limits.recordKeyCharsMax,
          description: 'the primary key of the record, whose newest version is proved',
        }),
      ),
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
    query: Type.Object({
      from: defineWhole(
        'entries of the smaller tree, such as `size` of a checkpoint that you kept',
      ),
      to: defineWhole('entries of the larger tree, such as `size` of the newest checkpoint'),
    }),
    reply: Type.Object({
      from: Type.Integer(),
      to: Type.Integer(),
      hashes: Type.Array(Type.String(), { description: 'the proof, as RFC 6962 defines it' }),
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
      next_cursor: NextCursor,
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
          witness: Type.String({ description: 'its name in the configuration' }),
          key: Type.String({ description: "the witness's verifier key" }),
          size: Type.Integer({ description: 'entries of the chain that it saw' }),
          time: Described(Time, 'when it signed'),
          checkpoint: Type.String({
            description: "signed note with the chain's signature and the witness's",
          }),
        }),
      ),
    }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
})
