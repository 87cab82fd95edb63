import { Type } from 'typebox'

export const Address = Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' })

const AnchorsAddress = Type.Optional({
  ...Address,
  description:
    'EVM chains: address of contracts/Anchors.sol; when not given, its address by the usual factory, where it is made if need be',
})

export const BaseFeeMax = Type.Optional(
  Type.Number({
    exclusiveMinimum: 0,
    maximum: 1e6,
    description:
      'EVM chains: the most that is paid for a unit of gas, base fee and tip together; transactions wait while the base fee is higher',
  }),
)

const Confirmations = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: 1000,
    description:
      'EVM chains: blocks that hold or follow a transaction before it counts; 2 when not given',
  }),
)

const network = Type.String({
  description:
    'name (base, celestia) or CAIP-2 id: eip155:8453, or cosmos: and the id of a chain of Celestia (cosmos:mocha-4)',
})
const rpcUrl = Type.String({
  pattern: '^https?://',
  description: 'a node of the chain: of an EVM chain, or a celestia-node',
})

/** Members that only Celestia has. */
const celestiaMembers = {
  token_file: Type.Optional(
    Type.String({
      description:
        'Celestia: file with the token that the node asks for, with the right to write; none when not given',
    }),
  ),
  gas_price_utia_max: Type.Optional(
    Type.Number({
      exclusiveMinimum: 0,
      maximum: 1_000,
      description:
        "Celestia: highest price of a unit of gas, in utia, that is paid; the node's own limit when not given",
    }),
  ),
}

/** Time between two anchors, and between two bundles of blocks, on chains that the operator names. */
export const intervalSecondsDefault = 60
/** Bytes of blocks that are published in a day (UTC) at most. */
export const publishedBytesPerDayDefault = 1_000_000

/** The member `anchors` of the configuration file. */
export const Anchors = Type.Union(
  [
    Type.Literal('off'),
    Type.Array(
      Type.Object(
        {
          network,
          rpc_url: rpcUrl,
          signer_key_file: Type.Optional(
            Type.String({
              description:
                'EVM chains, where it is needed: file with the 0x hex key that sends the anchors and pays their gas; used for nothing else',
            }),
          ),
          ...celestiaMembers,
          contract: AnchorsAddress,
          interval_seconds: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: 86_400,
              description: `least time between two anchors; ${intervalSecondsDefault} when not given`,
            }),
          ),
          confirmations: Confirmations,
          base_fee_gwei_max: BaseFeeMax,
        },
        { additionalProperties: false },
      ),
      { maxItems: 20 },
    ),
  ],
  {
    description:
      'other chains that get the root of the log every so often, or "off"; the devnet gets it unless that is off; see docs/anchoring.md',
  },
)

/** The member `publishers` of the configuration file. */
export const Publishers = Type.Union(
  [
    Type.Literal('off'),
    Type.Array(
      Type.Object(
        {
          network,
          rpc_url: rpcUrl,
          signer_key_file: Type.Optional(
            Type.String({
              description:
                'EVM chains, where it is needed: file with the 0x hex key that sends the blocks and pays their gas; used for nothing else',
            }),
          ),
          ...celestiaMembers,
          contract: AnchorsAddress,
          interval_seconds: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: 86_400,
              description: `least time between two bundles of blocks; ${intervalSecondsDefault} when not given`,
            }),
          ),
          confirmations: Confirmations,
          base_fee_gwei_max: BaseFeeMax,
          bytes_per_day: Type.Optional(
            Type.Integer({
              minimum: 131_072,
              maximum: 1e12,
              description: `bytes that are sent in a day (UTC) at most; ${publishedBytesPerDayDefault} when not given`,
            }),
          ),
          applications: Type.Optional(
            Type.Array(Type.String(), {
              maxItems: 10_000,
              description:
                'ids of the applications that are published; all that want it when not given',
            }),
          ),
        },
        { additionalProperties: false },
      ),
      { maxItems: 20 },
    ),
  ],
  {
    description:
      'other chains that get the blocks of applications that want it, or "off"; the devnet gets them unless that is off; see docs/publishing.md',
  },
)

/** The member `witnesses` of the configuration file. */
export const WitnessList = Type.Array(
  Type.Object(
    {
      key: Type.String({ description: 'public key, as `tollbase witness` prints it' }),
      url: Type.String({ pattern: '^https?://', description: 'where the witness serves' }),
    },
    { additionalProperties: false },
  ),
  {
    maxItems: 20,
    description: 'witnesses whose signatures are shown with the checkpoints; see docs/witness.md',
  },
)
