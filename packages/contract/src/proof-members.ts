import { type TSchema, Type } from 'typebox'

/** The members by which a store, or an upload, proves that a transfer was made for it, as older clients send them. */
export const makeProofMembers = <T extends TSchema>(
  make: (options: { readonly description: string }) => T,
) => ({
  payment_tx_hash: Type.Optional(
    make({ description: 'the hash of a transfer that was made for this request' }),
  ),
  quote_id: Type.Optional(
    make({ description: 'the quote that the transfer pays, from the 402 of this request' }),
  ),
  user_address: Type.Optional(make({ description: 'the wallet that made the transfer' })),
  payment_network: Type.Optional(
    make({ description: 'the network of the transfer, such as `base-sepolia`' }),
  ),
})
