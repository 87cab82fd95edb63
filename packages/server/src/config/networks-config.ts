import { limits } from '@tollbase/contract/limits'
import { Type } from 'typebox'
import { Address, BaseFeeMax } from './anchors-config.ts'

/** The member `networks` of the configuration file: the chains on which money is taken. */
export const Networks = Type.Array(
  Type.Object(
    {
      network: Type.String({
        description:
          'x402 name (base-sepolia) or CAIP-2 id (eip155:84532) of a chain that x402 has a name for; docs/operating.md lists them',
      }),
      asset: Type.Optional(
        Type.Object(
          {
            address: Address,
            name: Type.String({ description: "of the token's EIP-712 domain" }),
            version: Type.String(),
            symbol: Type.Optional(Type.String()),
            decimals: Type.Integer({
              minimum: 0,
              maximum: 36,
              description: '6; other tokens are refused, since books and prices count so',
            }),
          },
          {
            additionalProperties: false,
            description:
              'a dollar token with EIP-3009; when not given the known USDC, which ethereum, base, base-sepolia and avalanche have',
          },
        ),
      ),
      pay_to: Address,
      rpc_url: Type.Optional(Type.String({ pattern: '^https?://' })),
      facilitator_url: Type.Optional(
        Type.String({
          pattern: '^https?://',
          description: 'settle through this x402 facilitator instead of our own key',
        }),
      ),
      signer_key_file: Type.Optional(
        Type.String({
          description: 'file with the 0x hex key that pays the gas of settlements; needs rpc_url',
        }),
      ),
      pay_to_key_file: Type.Optional(
        Type.String({
          description:
            'file with the 0x hex key of pay_to, for withdrawals and payouts; needs rpc_url',
        }),
      ),
      channels: Type.Optional(
        Type.Union(
          [
            Type.Boolean(),
            Type.Object(
              { code_hash: Type.String({ pattern: '^0x[0-9a-f]{64}$' }) },
              { additionalProperties: false },
            ),
          ],
          {
            description:
              'whether payment channels (x402 batch-settlement) are taken; false when not given. code_hash: the hash of the contracts on this network, where they are not ours; see docs/channels.md',
          },
        ),
      ),
      upto: Type.Optional(
        Type.Boolean({
          description:
            'whether payments of the scheme upto are taken, by Permit2; false when not given',
        }),
      ),
      explorer: Type.Optional(
        Type.String({
          pattern: '^(none|https?://[^\\s?#]+)$',
          description:
            'explorer of the chain, to which lists of transactions link (/tx/<hash>), or none; the known one of a public network when not given',
        }),
      ),
      confirmations: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: 1000,
          description: 'blocks that hold or follow a payment before it counts (1)',
        }),
      ),
      base_fee_gwei_max: BaseFeeMax,
      minimum_payment: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: Number(limits.amountAtomicMax),
          description:
            'smallest payment that is asked for, in atomic units (1000); what a price is less stays on the payer’s balance',
        }),
      ),
      withdrawal_minimum: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: Number(limits.amountAtomicMax),
          description:
            'smallest withdrawal and payout, in atomic units (100 times minimum_payment): each costs gas',
        }),
      ),
      withdrawal_fee: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: Number(limits.amountAtomicMax),
          description:
            'what a withdrawal costs beside its amount, in atomic units (0), for the gas; payouts have none',
        }),
      ),
      sweep_minimum: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: Number(limits.amountAtomicMax),
          description:
            'what came in by a native transfer is sent on to pay_to from so many atomic units (minimum_payment)',
        }),
      ),
      native_transfers: Type.Optional(
        Type.Boolean({
          description:
            'also take transfers that payers make themselves, by their hash; needs rpc_url',
        }),
      ),
    },
    { additionalProperties: false },
  ),
  { maxItems: 20 },
)
