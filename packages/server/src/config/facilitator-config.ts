import { limits } from '@tollbase/contract/limits'
import { type Static, Type } from 'typebox'
import { PositiveInteger } from './positive-integer.ts'

export const facilitatorAccess = ['key', 'open'] as const

/** Whom the service settles payments to others for, and how many. */
export const Facilitator = Type.Object(
  {
    access: Type.Optional(
      Type.Enum(facilitatorAccess, {
        description:
          'key: for callers with a key of an application or of the operator; open: for everybody; key when not given',
      }),
    ),
    networks: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), {
        minItems: 1,
        maxItems: 20,
        description: 'those of networks that it serves; all with signer_key_file when not given',
      }),
    ),
    minimum_payment: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000_000,
        description:
          'atomic units below which nothing is settled for others; that of the network when not given',
      }),
    ),
    settlements_per_day: PositiveInteger(
      'settlements of one application or address a day; 1000 when not given',
    ),
    all_settlements_per_day: PositiveInteger(
      'settlements of all callers a day; 10000 when not given',
    ),
  },
  {
    additionalProperties: false,
    description:
      'settles payments to others for other x402 servers, with our gas; not when not given; see docs/facilitator.md',
  },
)

export type FacilitatorConfig = {
  /** Callers with a key of an application or the operator's, or everybody. */
  readonly access: (typeof facilitatorAccess)[number]
  /** CAIP-2 ids or names of version 1; all networks with our own gas key when not given. */
  readonly networks: readonly string[] | undefined
  /** The least payment in atomic units; that of the network when not given. */
  readonly minimumPayment: bigint | undefined
  /** Settlements of one caller, and of all callers. */
  readonly settlementsPerDay: number
  readonly allSettlementsPerDay: number
}

/** Fills in what the file does not say. */
export function readFacilitator(file: Static<typeof Facilitator>): FacilitatorConfig {
  const { minimum_payment: least } = file
  return {
    access: file.access ?? 'key',
    networks: file.networks,
    minimumPayment: least === undefined ? undefined : BigInt(least),
    settlementsPerDay: file.settlements_per_day ?? limits.facilitatedPerCallerMax,
    allSettlementsPerDay: file.all_settlements_per_day ?? limits.facilitatedPerDayMax,
  }
}
