import { Type } from 'typebox'
import { contract } from './route.ts'
import { appParamsWith, open, Time } from './schemas.ts'

/** The service's own chain is reached under the application id `system`. */
const ChainParams = appParamsWith({})
const Whole = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

export const chain = contract({
  getCheckpoint: {
    method: 'GET',
    path: '/api/apps/:app/chain/checkpoint',
    area: 'Chain',
    summary: "The newest signed checkpoint of an application's chain (C2SP form)",
    access: 'public',
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
    access: 'public',
    params: appParamsWith({ height: Whole }),
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
    summary: 'Proof that an entry is in the chain, by `height` and `sequence`; hashes only',
    access: 'public',
    params: ChainParams,
    query: Type.Object({ height: Whole, sequence: Whole }),
    reply: Type.Object({
      height: Type.Integer(),
      sequence: Type.Integer(),
      leaf_index: Type.Integer(),
      leaf_hash: Type.String(),
      inclusion: Type.Object({}, open),
      checkpoint: Type.String(),
    }),
    errors: ['APPLICATION_NOT_FOUND', 'NO_CHAIN_ENTRY'],
  },
  getConsistencyProof: {
    method: 'GET',
    path: '/api/apps/:app/chain/consistency',
    area: 'Chain',
    summary: 'Proof that the tree of size `from` is a prefix of the tree of size `to`',
    access: 'public',
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
