import { describe, expect, it } from 'vitest';
import { severity } from '../../src/calls/fields.ts';
import { counters, step, workflowRig } from './workflow-rig.ts';

const rig = workflowRig();

const expert = {
  status: 'security_analysis_complete',
  summary: 'one way in',
  security_findings: [{ category: 'A03', severity: 'High', vulnerability: 'injection', evidence: 'a.ts:1' }],
};

describe('secaudit', () => {
  it('goes through seven steps, each with work of its own, to the expert’s findings', async () => {
    rig.answers(JSON.stringify(expert));
    const settings = {
      security_scope: 'the login',
      threat_level: 'high',
      compliance_requirements: ['GDPR', 'SOC2'],
      audit_focus: 'owasp',
      severity_filter: 'medium',
      relevant_files: ['a.ts'],
    };
    let reply = await rig.call('secaudit', step(1, 7, settings));
    const id = { continuation_id: reply.continuation_id };
    const actions = [JSON.stringify(reply.required_actions)];
    for (let n = 2; n <= 6; n++) {
      const issues_found = n === 3 ? [{ severity: 'critical', description: 'query built from input' }] : [];
      reply = await rig.call('secaudit', step(n, 7, { ...id, issues_found, confidence: 'medium' }));
      expect(reply).toMatchObject({ status: 'pause_for_security_audit', secaudit_required: true });
      actions.push(JSON.stringify(reply.required_actions));
    }
    expect(new Set(actions).size).toBe(6);
    expect(reply.security_audit_status).toMatchObject({
      ...counters,
      vulnerabilities_by_severity: { critical: 1 },
      audit_confidence: 'medium',
    });
    expect(rig.asked()).toBe(0);
    reply = await rig.call('secaudit', step(7, 7, { ...id, confidence: 'high' }));
    expect(reply).toMatchObject({
      status: 'calling_expert_analysis',
      security_audit_complete: true,
      complete_security_audit: { steps_taken: 7, relevant_files: ['a.ts'], issues_found: [{ severity: 'critical' }] },
      expert_analysis: expert,
    });
    for (const text of ['the login', 'Threat level: high; focus: owasp', 'GDPR, SOC2', 'severity medium and above'])
      expect(rig.tail()).toContain(text);
    expect(rig.prompt()).toContain('query built from input');
    expect(rig.prompt()).toContain('export const alpha');
  });

  it('reports the categories that the expert left out, or copied as empty forms, as not applicable', async () => {
    const told = { status: 'Vulnerable', findings: ['a.ts:1'], recommendations: ['Bind.'] };
    const owasp_assessment = {
      A03_Injection: told,
      A02_Cryptographic_Failures: {},
      A04_Insecure_Design: 'no',
      Own: told,
    };
    rig.answers(JSON.stringify({ ...expert, owasp_assessment }));
    const reply = await rig.call('secaudit', step(1, 1, { relevant_files: ['a.ts'] }));
    const assessed = reply.expert_analysis.owasp_assessment;
    expect(Object.keys(assessed).length).toBe(11);
    expect(assessed).toMatchObject({ A03_Injection: told, Own: told });
    for (const name of ['A01_Broken_Access_Control', 'A02_Cryptographic_Failures', 'A04_Insecure_Design', 'A10_SSRF']) {
      expect(assessed[name]).toEqual({ status: 'Not_Applicable', findings: [], recommendations: [] });
      expect(rig.tail()).toContain(name);
    }
    expect(rig.tail()).not.toContain('{}');
    // What was not assessed at all is not made up.
    rig.answers(JSON.stringify(expert));
    const other = await rig.call('secaudit', step(1, 1, { relevant_files: ['a.ts'] }));
    expect(other.expert_analysis).toEqual(expert);
  });

  it('rates by the scale that reviews, refactorings and validations use too', async () => {
    for (const tool of ['secaudit', 'refactor', 'codereview', 'precommit']) {
      rig.answers('{}');
      await rig.call(tool, step(1, 1, { relevant_files: ['a.ts'], path: '.', confidence: 'low' }));
      expect(rig.tail(), tool).toContain(severity.scale);
    }
  });

  it('has work to do beyond its six stages', async () => {
    let reply = await rig.call('secaudit', step(1, 9));
    for (let n = 2; n <= 8; n++)
      reply = await rig.call('secaudit', step(n, 9, { continuation_id: reply.continuation_id }));
    expect(reply.required_actions.length).toBeGreaterThan(1);
  });

  it('loses nothing of the caller’s work when the expert fails, and takes the last step again', async () => {
    const first = await rig.call('secaudit', step(1, 2, { relevant_files: ['a.ts'] }));
    const id = { continuation_id: first.continuation_id };
    rig.fails();
    const failed = await rig.call('secaudit', step(2, 2, id));
    expect(failed).toMatchObject({
      isError: true,
      status: 'error',
      error: { code: 'API_ERROR' },
      continuation_id: first.continuation_id,
      security_audit_status: counters,
    });
    // Nothing is complete without its expert; the thread keeps the work.
    expect(Object.keys(failed).filter(key => key.includes('complete'))).toEqual([]);
    rig.answers(JSON.stringify(expert));
    const again = await rig.call('secaudit', step(2, 2, id));
    expect(again).toMatchObject({ status: 'calling_expert_analysis', complete_security_audit: { steps_taken: 2 } });
    expect(again.complete_security_audit.work_summary).toMatch(/finding 1[\s\S]*finding 2/);
    expect(again.complete_security_audit.work_summary.split('finding 2')).toHaveLength(2);
  });

  it('skips the expert at certain', async () => {
    const reply = await rig.call('secaudit', step(1, 1, { confidence: 'certain' }));
    expect(reply).toMatchObject({
      status: 'security_analysis_complete',
      expert_analysis: { status: 'skipped_due_to_certain_audit_confidence' },
      complete_security_audit: { final_analysis: 'finding 1', confidence_level: 'certain' },
    });
    expect(rig.asked()).toBe(0);
  });
});
