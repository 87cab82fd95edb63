/** One bug, planted in the product's source for a run: the text that is found once in the file is replaced. */
export type Mutant = {
  readonly name: string
  /** Under packages/server/src. */
  readonly file: string
  readonly find: string
  readonly put: string
  /** Which of the two simulations must notice. */
  readonly scene: 'market' | 'log'
  /** The first seed to try, for what few seeds come upon. */
  readonly from?: number
}

/** Bugs that the simulation must notice. Each is one that somebody could write. */
export const mutants: readonly Mutant[] = [
  {
    name: 'claim-is-not-made',
    scene: 'market',
    file: 'domains/payments/payments.ts',
    find: '(await insertClaim(database, claim))',
    put: 'insertClaim !== undefined',
  },
  {
    name: 'claim-bought-something-else',
    scene: 'market',
    file: 'domains/payments/payments.ts',
    find: "if (found.request_hash !== paid.requestHash) throw new Fault('PAYMENT_ALREADY_USED')",
    put: '',
  },
  {
    name: 'quote-is-no-part-of-the-proof',
    scene: 'market',
    file: 'domains/payments/stored-payment.ts',
    find: "const secret = payment.quoteId ?? payment.origin ?? ''",
    put: "const secret = ''",
  },
  {
    name: 'delivers-while-pending',
    scene: 'market',
    file: 'domains/payments/payments.ts',
    find: "if (outcome.state === 'pending') throw pending(claim.id, outcome.reason)",
    put: "if (outcome.state === 'pending') return { claim, transaction: '', isFresh: found === undefined }",
  },
  {
    name: 'pending-is-refused',
    scene: 'market',
    from: 6,
    file: 'domains/payments/payments.ts',
    find: "if (outcome.state === 'pending') throw pending(claim.id, outcome.reason)",
    put: "if (outcome.state === 'pending') return 'The payment was not settled'",
  },
  {
    name: 'lookup-of-pending-fails-the-claim',
    scene: 'market',
    from: 3,
    file: 'domains/payments/payments.ts',
    find: "if (outcome.state === 'pending' || (outcome.state === 'failed' && !outcome.final))\n      return undefined",
    put: "if (outcome.state === 'pending') {\n await setFailed(this.ports.database, claim.id, { reason: 'pending', isFinal: true })\n return undefined }",
  },
  {
    name: 'transaction-of-another-payment-counts',
    scene: 'market',
    file: 'domains/payments/claim-store.ts',
    find: 'if (isUniqueViolation(error)) return false',
    put: 'if (isUniqueViolation(error)) return true',
  },
  {
    name: 'deposit-under-two-identities',
    scene: 'market',
    file: 'domains/payments/delivering.ts',
    find: '[depositOf(claim, transaction)]',
    put: "[depositOf(claim, transaction), depositOf({ ...claim, identity: claim.identity + '0' }, transaction)]",
  },
  {
    name: 'sale-without-deposit',
    scene: 'market',
    file: 'domains/payments/delivering.ts',
    find: 'isDeposited ? [sale] : [depositOf(claim, transaction), sale]',
    put: '[sale]',
  },
  {
    name: 'charge-above-quote',
    scene: 'market',
    file: 'domains/payments/delivering.ts',
    find: 'if (amount > limit) return limit',
    put: '',
  },
  {
    name: 'reply-is-not-kept',
    scene: 'market',
    file: 'domains/payments/delivering.ts',
    find: 'const kept = await keepReply(database, {',
    put: 'const kept = await (async (_, reply) => reply)(keepReply, {',
  },
  {
    name: 'retry-writes-again',
    scene: 'market',
    from: 12,
    file: 'domains/payments/delivering.ts',
    find: 'const earlier = await offer.recover(catalog, claim.id, Number(claim.write_after))',
    put: 'const earlier = undefined',
  },
  {
    name: 'no-lock-on-a-payment',
    scene: 'market',
    from: 5,
    file: 'domains/payments/once.ts',
    find: 'if (busy === undefined) break',
    put: 'break',
  },
  {
    name: 'price-of-now',
    scene: 'market',
    file: 'domains/payments/quoting.ts',
    find: 'version === quote.ruleVersion',
    put: 'version !== -1',
  },
  {
    name: 'late-money-is-not-looked-for',
    scene: 'market',
    file: 'domains/payments/reconciler.ts',
    find: 'const claims = await expiredFailures(database, { beforeSeconds, after, limit: pageSize })',
    put: 'const claims = []',
  },
  {
    name: 'open-claims-are-not-looked-for',
    scene: 'market',
    file: 'domains/payments/reconciler.ts',
    find: 'const claims = await openClaims(database, { olderThanMs, after, limit: pageSize })',
    put: 'const claims = []',
  },
  {
    name: 'settled-by-its-own-block-alone',
    scene: 'market',
    file: 'x402/receipts.ts',
    find: 'if (buried >= BigInt(confirmations))',
    put: 'if (buried >= 1n)',
  },
  {
    name: 'transaction-that-did-nothing-counts',
    scene: 'market',
    from: 48,
    file: 'x402/authorization.ts',
    find: "return { state: 'failed', reason: 'no_transfer', final: true }",
    put: '',
  },
  {
    name: 'acknowledged-before-commit',
    scene: 'log',
    file: 'chain/committer.ts',
    find: 'await this.#commit(block)\n        this.#committed(block, batch)',
    put: 'this.#committed(block, batch)\n        await this.#commit(block)',
  },
  {
    name: 'acknowledged-and-left-out',
    scene: 'log',
    from: 13,
    file: 'chain/committer.ts',
    find: 'this.#build(batch)',
    put: 'this.#build(batch.length > 1 ? batch.slice(1) : batch)',
  },
  {
    name: 'groups-out-of-order',
    scene: 'log',
    from: 13,
    file: 'chain/committer.ts',
    find: 'const groups = batch.map(({ group }) => group)',
    put: 'const groups = batch.map(({ group }) => group).reverse()',
  },
  {
    name: 'any-block-at-the-height-is-ours',
    scene: 'log',
    from: 8,
    file: 'chain/committer.ts',
    find: 'if (stored.header.equals(block.header) && stored.signature.equals(block.signature)) return',
    put: 'return',
  },
  {
    name: 'unknown-commit-has-failed',
    scene: 'log',
    from: 4,
    file: 'chain/committer.ts',
    find: 'if (!isUniqueViolation(error)) throw error\n      await',
    put: 'throw error\n      await',
  },
  {
    name: 'applier-skips-a-block',
    scene: 'log',
    file: 'chain/lane.ts',
    find: 'applier.apply(tx, blocks, step)',
    put: 'applier.apply(tx, blocks.length > 1 ? blocks.slice(1) : blocks, step)',
  },
  {
    name: 'applied-twice',
    scene: 'log',
    file: 'chain/block-store.ts',
    find: 'WHERE id = 1 AND height =',
    put: 'WHERE id = 1 AND height <> -1 -',
  },
  {
    name: 'applied-before-it-is',
    scene: 'log',
    file: 'chain/lane.ts',
    find: 'if (height <= this.#watermark.height) return Promise.resolve()',
    put: 'if (height <= this.#target) return Promise.resolve()',
  },
  {
    name: 'watermark-apart-from-its-tables',
    scene: 'log',
    file: 'chain/block-store.ts',
    find: 'const changed = await tx.execute(',
    put: 'const changed = await this.#database.execute(',
  },
]
