import type { Command } from 'commander'
import { addMaintenanceOptions, type MaintenanceFlags, runMaintenance } from './offline-command.ts'

/** `tollbase rebuild`: makes every projected table anew from the entries. */
export function addRebuildCommand(program: Command, finish: (code: number) => void): void {
  addMaintenanceOptions(program.command('rebuild'))
    .description('make every table anew from the entries of the chains (with the service stopped)')
    .action(async (flags: MaintenanceFlags) => {
      const { rebuild } = await import('@tollbase/server/operator/rebuild')
      finish(await runMaintenance(flags, rebuild))
    })
}
