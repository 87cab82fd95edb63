import { audit } from '@tollbase/server/app-audit'
import type { Command } from 'commander'
import { type MaintenanceFlags, maintenance, maintenanceOptions } from './maintenance.ts'

/** `tollbase audit`: exit 0 equal, 1 different, 2 could not run. */
export function auditCommand(program: Command, finish: (code: number) => void): void {
  maintenanceOptions(program.command('audit'))
    .description(
      'recompute every hash, root, table, balance and receipt from the entries, and compare',
    )
    .action(async (flags: MaintenanceFlags) => finish(await maintenance(flags, audit)))
}
