import type { Command } from 'commander'
import { addMaintenanceOptions, type MaintenanceFlags, runMaintenance } from './offline-command.ts'

type Flags = MaintenanceFlags & {
  readonly checkpoint?: string[]
  readonly rpc?: string
  readonly trust?: string[]
}

/** `tollbase audit`: exit 0 equal, 1 different, 2 could not run. */
export function addAuditCommand(program: Command, finish: (code: number) => void): void {
  addMaintenanceOptions(program.command('audit'))
    .description(
      'recompute every hash, root, table, view, balance and receipt from the log, and compare them, the structure of the tables and the operational state with the stored ones',
    )
    .option(
      '--checkpoint <file...>',
      'checkpoints and receipts that were kept (GET /api/apps/{app}/chain/checkpoint, GET /api/receipts/{id}): the log must begin as each says',
    )
    .option(
      '--trust <what...>',
      'foreign objects, changed built-ins and settings of your PostgreSQL server that you know, each in the words in which audit names it ("event trigger log_ddl")',
    )
    .option(
      '--rpc <url>',
      'a node of a chain with anchors: the chain must have every anchor of the log, and the log every root on the chain',
    )
    .action(async ({ checkpoint: checkpoints = [], rpc, trust: trusted = [], ...flags }: Flags) => {
      const [{ audit }, { auditOuterChain }] = await Promise.all([
        import('@tollbase/server/operator/audit/audit'),
        import('@tollbase/server/operator/audit/audit-outer-chain'),
      ])
      const run: Parameters<typeof runMaintenance>[1] = async (config, progress) => {
        const report = await audit(config, progress, { checkpoints, trusted })
        if (!report.equal || rpc === undefined) return report
        return { ...report, ...(await auditOuterChain(config, rpc)) }
      }
      finish(await runMaintenance(flags, run))
    })
}
