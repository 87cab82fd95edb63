import type { Mutant } from './mutant.ts'

const market = { scene: 'market', subject: 'signins' } as const
const signIn = 'services/payments/budgets/sign-in.ts'

/** Bugs in what a wallet's sign-in pays for. */
export const signInMutants: readonly Mutant[] = [
  {
    name: 'sign-in-is-good-twice',
    ...{ ...market, file: signIn },
    find: 'return { ...made, payer, most: BigInt(most), isUsed: !isFree }',
    put: 'return { ...made, payer, most: BigInt(most), isUsed: !isFree && nonce === payer }',
  },
  {
    name: 'sign-in-goes-on-with-nothing',
    ...{ ...market, file: 'services/access/wallet-signature.ts' },
    find: 'return row?.payment === payment',
    put: 'return false',
  },
  {
    name: 'sign-in-pays-any-price',
    ...{ ...market, file: 'services/payments/budgets/balance-payments.ts' },
    from: 5,
    find: 'cap > signedIn.most)',
    put: 'cap > signedIn.most * 1_000n)',
  },
  {
    name: 'sign-in-is-for-any-request',
    ...{ ...market, file: signIn },
    find: 'if (asked !== hash) return refuse',
    put: 'if (asked === undefined) return refuse',
  },
  {
    name: 'sign-in-of-another-service-counts',
    ...{ ...market, file: signIn },
    find: 'if (!isAskedByUs(ports, signed)) return',
    put: "if (!isAskedByUs(ports, signed) && hash === '') return",
  },
  {
    name: 'sign-in-is-of-whom-it-names',
    ...{ ...market, file: 'x402/sign-in.ts' },
    find: 'return signer === signed.address.toLowerCase() ? signer : undefined',
    put: 'return signer && signed.address.toLowerCase()',
  },
  {
    name: 'sign-in-is-never-over',
    ...{ ...market, file: signIn },
    find: 'if (nowMs > Date.parse(signed.expirationTime)) return',
    put: 'if (Number.isNaN(nowMs)) return',
  },
  {
    name: 'sign-in-is-not-known-by-its-name',
    ...{ ...market, file: 'services/payments/budgets/paying-key.ts' },
    find: "const named = name === undefined ? ['nonce', by.nonce] : ['name', name]",
    put: "const named = name === undefined ? ['nonce', by.nonce] : ['name', by.nonce]",
  },
]
