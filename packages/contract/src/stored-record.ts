import { Type } from 'typebox'

/** The place of a record that was stored, in the words of public clients. */
export const StoredRecord = Type.Object(
  {
    id: Type.String({ description: 'the primary key of the record' }),
    celestia_height: Type.Integer({
      description: "the block's height on the application's own chain",
    }),
    block_height: Type.Integer({ description: 'another name of `celestia_height`' }),
    sequence: Type.Integer({ description: 'its place within the block, from 0' }),
    blob_id: Type.String({ description: 'the leaf hash again, as public clients read it' }),
    namespace: Type.String({ description: 'the `namespace` of the collection' }),
    tx_hash: Type.String({ description: 'the Merkle leaf hash of the entry, 0x hex' }),
  },
  { $id: 'StoredRecord' },
)
