import type { Command } from 'commander'
import { addMaintenanceOptions, type MaintenanceFlags, runMaintenance } from './maintenance.ts'

/** `tollbase audit`: exit 0 equal, 1 different, 2 could not run. */
export function addAuditCommand(program: Command, finish: (code: number) => void): void {
  addMaintenanceOptions(program.command('audit'))
    .description(
      'recompute every hash, root, table, view, balance and receipt from the entries, and compare, also what tables are made of and what is kept beside them',
    )
    .option(
      '--checkpoint <file...>',
      'checkpoints that were kept (GET /api/apps/{app}/chain/checkpoint): the log must begin as each says',
    )
    .action(async ({ checkpoint, ...flags }: MaintenanceFlags & { checkpoint?: string[] }) => {
      const { audit } = await import('@tollbase/server/operator/audit/audit')
      finish(await runMaintenance(flags, (config, progress) => audit(config, progress, checkpoint)))
    })
}
