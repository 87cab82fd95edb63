import { giveParts } from '@tollbase/testing/give-parts'
import type { Database } from '../../packages/server/src/database/database.ts'
import type { Tenants } from '../../packages/server/src/services/applications/tenants.ts'
import type {
  PaymentMethod,
  PaymentPorts,
} from '../../packages/server/src/services/payments/payment-ports.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import type { Facilitator } from '../../packages/server/src/x402/facilitator.ts'
import type { TestService } from '../support/service.ts'
import { replaceFacilitators } from './false-facilitators.ts'

/** The point at which a process dies: its step of this number, before or after the step took effect. */
export type Death = { readonly step: number; readonly when: 'before' | 'after' }

export type Dying = {
  readonly payments: Payments
  /** The names of the steps that were begun. */
  readonly steps: () => readonly string[]
}

class Died extends Error {}

/**
 * The payments of a process that dies at one of its steps to the outside (a statement, a call of the facilitator,
 * an append): from then on nothing that it does has any effect, and its memory is lost.
 */
export function makeDyingPayments(ports: PaymentPorts, death: Death | undefined): Dying {
  const steps: string[] = []
  let dead = false
  const step = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    if (dead) throw new Died(name)
    steps.push(name)
    const isLast = death !== undefined && steps.length - 1 === death.step
    if (isLast) dead = true
    if (isLast && death.when === 'before') throw new Died(name)
    const result = await work()
    if (dead) throw new Died(name)
    return result
  }
  const { system } = ports.tenants
  const chain = {
    head: () => system.chain.head(),
    watermark: () => system.chain.watermark(),
    whenApplied: (height: number) => system.chain.whenApplied(height),
    append: (...given: Parameters<typeof system.chain.append>) =>
      step('append', () => system.chain.append(...given)),
  }
  const database: Database = {
    ...ports.database,
    query: (statement, options) =>
      step(getStepName(statement.text), () => ports.database.query(statement, options)),
    execute: (statement) =>
      step(getStepName(statement.text), () => ports.database.execute(statement)),
    transaction: (work, options) => step('hold', () => ports.database.transaction(work, options)),
  }
  const wrap = ({ readFunds, ...one }: Facilitator): Facilitator => ({
    ...(readFunds && { readFunds: (...given) => step('verify', () => readFunds(...given)) }),
    verify: (...given) => step('verify', () => one.verify(...given)),
    isUsed: (...given) => step('verify', () => one.isUsed(...given)),
    findUse: (...given) => step('lookup', () => one.findUse(...given)),
    settle: (...given) => step('settle', () => one.settle(...given)),
    lookup: (...given) => step('lookup', () => one.lookup(...given)),
  })
  const methods = ports.methods.map(
    ({ network, facilitator, native, escrow, upto }): PaymentMethod => ({
      network,
      facilitator: wrap(facilitator),
      ...(upto && { upto: { ...upto, ...wrap(upto) } }),
      ...(escrow && {
        escrow: {
          ...escrow,
          readState: (...given) => step('read', () => escrow.readState(...given)),
          deposit: (...given) => step('deposit', () => escrow.deposit(...given)),
        },
      }),
      ...(native && {
        native: {
          find: (...given) => step('verify', () => native.find(...given)),
          settle: (...given) => step('settle', () => native.settle(...given)),
        },
      }),
    }),
  )
  // Payments use nothing else of the tenants.
  const load = (app: string) => ports.tenants.load(app)
  const requireRecord = (app: string) => ports.tenants.requireRecord(app)
  const tenants = giveParts<Tenants>({ system: { ...system, chain }, load, requireRecord })
  return { payments: new Payments({ ...ports, database, methods, tenants }), steps: () => steps }
}

/** Replaces the service's own payments, as a restart does. */
export function replacePayments(service: TestService, payments: Payments): void {
  Object.assign(service.running.service, { payments })
}

function getStepName(text: string): string {
  const words = text.trim().split(/\s+/)
  const table = /"(claim|kept_reply|sale|settled_payment)"/.exec(text)?.[1] ?? ''
  return `${words[0]} ${table}`.trim()
}

/** Has the networks refuse what is paid meanwhile, as they may do for a while. */
export async function whileRefused(service: TestService, work: () => Promise<void>): Promise<void> {
  const { ports } = service.running.service.payments
  const refusing = replaceFacilitators(ports, () => ({
    settle: async () => ({ state: 'failed', reason: 'for now', final: false }),
  }))
  replacePayments(service, new Payments(refusing))
  await work()
  replacePayments(service, new Payments(ports))
}
