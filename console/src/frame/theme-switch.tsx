import { useId, useState } from 'react';
import { keepTheme, keptTheme, type Theme } from './theme.ts';

export function ThemeSwitch() {
  const id = useId();
  const [theme, setTheme] = useState(keptTheme);
  const choose = (chosen: Theme) => {
    keepTheme(chosen);
    setTheme(chosen);
  };
  return (
    <div className="theme-switch">
      <label htmlFor={id}>Theme</label>
      <select id={id} value={theme} onChange={({ target }) => choose(target.value as Theme)}>
        <option value="system">System</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </div>
  );
}
